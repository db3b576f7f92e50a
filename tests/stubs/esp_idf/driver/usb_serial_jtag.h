#pragma once
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"

typedef struct {
  uint32_t tx_buffer_size;
  uint32_t rx_buffer_size;
} usb_serial_jtag_driver_config_t;
esp_err_t usb_serial_jtag_driver_install(usb_serial_jtag_driver_config_t* config);
int usb_serial_jtag_read_bytes(void* bytes, uint32_t length, TickType_t ticks);
int usb_serial_jtag_write_bytes(const void* bytes, size_t size, TickType_t ticks);
