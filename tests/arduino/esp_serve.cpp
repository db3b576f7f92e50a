// The runner of ESP-IDF's project, or the sketch as on the Arduino core, on a made-up chip: what
// stands behind a serial line. SKETCH chooses; the engine is that of fakes.h.
#include "esp_chip.h"
#include "fakes.h"
#include "runner/tflm_engine.h"

namespace runner {
Engine* TflmEngine() {
  static FakeEngine engine;
  return &engine;
}
}  // namespace runner

#if defined(SKETCH)
#include "Arduino.h"
HardwareSerial Serial;
size_t HardwareSerial::setRxBufferSize(size_t size) { return size; }
void HardwareSerial::begin(unsigned long) {}
int HardwareSerial::available() {
  pollfd line = {0, POLLIN, 0};
  return poll(&line, 1, 0);
}
int HardwareSerial::read() {
  uint8_t byte;
  return chip::Read(&byte, 1, 0) == 1 ? byte : -1;
}
size_t HardwareSerial::write(const uint8_t* bytes, size_t size) {
  return static_cast<size_t>(uart_write_bytes(UART_NUM_0, bytes, size));
}
void delay(uint32_t milliseconds) { usleep(milliseconds * 1000); }
#include "arduino_runner.ino"
int main() { setup(); }
#else
#include "idf/main/main.cpp"
int main() { app_main(); }
#endif
