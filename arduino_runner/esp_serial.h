// The port of a sketch on a chip of Espressif's: whatever `Serial` is there, USB or a UART.
#pragma once
#if defined(ARDUINO_ARCH_ESP32)
#include <Arduino.h>

#include "src/esp/esp_port.h"

namespace runner {

class ArduinoPort : public EspPort {
 public:
  bool Begin() override {
    Serial.setRxBufferSize(4096);  // a request and its repeat wait here while TFLM runs
    Serial.begin(115200);
    return true;
  }
  size_t Read(uint8_t* bytes, size_t most) override {
    size_t count = 0;
    while (count < most && Serial.available() > 0) bytes[count++] = static_cast<uint8_t>(Serial.read());
    if (count == 0) delay(1);
    return count;
  }
  void Write(const uint8_t* bytes, size_t size) override { Serial.write(bytes, size); }
};

}  // namespace runner

#endif
