#include "idf_ports.h"

#if defined(ESP_PLATFORM) && !defined(ARDUINO)

#include "driver/uart.h"
#include "freertos/FreeRTOS.h"
#if SOC_USB_SERIAL_JTAG_SUPPORTED
#include "driver/usb_serial_jtag.h"
#endif

namespace runner {
namespace {

constexpr int kDriverBytes = 4096;  // a request and its repeat lie in the driver while TFLM runs
constexpr uint32_t kReadMillis = 10, kWriteMillis = 200;

size_t Count(int moved) { return moved > 0 ? static_cast<size_t>(moved) : 0; }

}  // namespace

bool UartPort::Begin() {
  uart_config_t config = {};
  config.baud_rate = baud_;
  config.data_bits = UART_DATA_8_BITS;
  config.parity = UART_PARITY_DISABLE;
  config.stop_bits = UART_STOP_BITS_1;
  config.flow_ctrl = UART_HW_FLOWCTRL_DISABLE;
  config.source_clk = UART_SCLK_DEFAULT;
  const uart_port_t port = static_cast<uart_port_t>(number_);
  return uart_driver_install(port, kDriverBytes, 0, 0, nullptr, 0) == ESP_OK &&
         uart_param_config(port, &config) == ESP_OK;
}

// One byte is waited for; more are taken where they are there already, because a driver that is
// asked for many waits for all of them.
size_t UartPort::Read(uint8_t* bytes, size_t most) {
  const uart_port_t port = static_cast<uart_port_t>(number_);
  size_t there = 0;
  if (uart_get_buffered_data_len(port, &there) != ESP_OK || there == 0) there = 1;
  if (there > most) there = most;
  return Count(uart_read_bytes(port, bytes, static_cast<uint32_t>(there),
                               pdMS_TO_TICKS(kReadMillis)));
}

void UartPort::Write(const uint8_t* bytes, size_t size) {
  uart_write_bytes(static_cast<uart_port_t>(number_), bytes, size);
}

#if SOC_USB_SERIAL_JTAG_SUPPORTED
bool UsbSerialJtagPort::Begin() {
  usb_serial_jtag_driver_config_t config = {};
  config.tx_buffer_size = kDriverBytes;
  config.rx_buffer_size = kDriverBytes;
  return usb_serial_jtag_driver_install(&config) == ESP_OK;
}

size_t UsbSerialJtagPort::Read(uint8_t* bytes, size_t most) {
  return Count(usb_serial_jtag_read_bytes(bytes, static_cast<uint32_t>(most),
                                          pdMS_TO_TICKS(kReadMillis)));
}

// In pieces: what is larger than the driver's buffer would never be taken.
void UsbSerialJtagPort::Write(const uint8_t* bytes, size_t size) {
  while (size > 0) {
    const size_t piece = size < kDriverBytes / 4 ? size : kDriverBytes / 4;
    const size_t done =
        Count(usb_serial_jtag_write_bytes(bytes, piece, pdMS_TO_TICKS(kWriteMillis)));
    if (done == 0) return;  // nobody listens
    bytes += done;
    size -= done;
  }
}
#endif

}  // namespace runner

#endif
