// Ports of ESP-IDF's own drivers: a UART, and the USB controller for serial and JTAG that the C3,
// C6, H2, S3 and P4 have. Not for Arduino, whose core owns both.
#pragma once
#if defined(ESP_PLATFORM) && !defined(ARDUINO)

#include "esp_port.h"
#include "soc/soc_caps.h"

namespace runner {

class UartPort : public EspPort {
 public:
  // On the pins that the chip's ROM uses for it.
  UartPort(int number, int baud) : number_(number), baud_(baud) {}
  bool Begin() override;
  size_t Read(uint8_t* bytes, size_t most) override;
  void Write(const uint8_t* bytes, size_t size) override;

 private:
  int number_, baud_;
};

#if SOC_USB_SERIAL_JTAG_SUPPORTED
class UsbSerialJtagPort : public EspPort {
 public:
  bool Begin() override;
  size_t Read(uint8_t* bytes, size_t most) override;
  void Write(const uint8_t* bytes, size_t size) override;
};
#endif

}  // namespace runner

#endif
