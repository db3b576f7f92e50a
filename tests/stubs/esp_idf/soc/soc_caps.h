#pragma once
#define SOC_USB_SERIAL_JTAG_SUPPORTED 1
