// The Arduino core for chips of Espressif's, as much of it as the sketch asks for.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct HardwareSerial {
  size_t setRxBufferSize(size_t size);
  void begin(unsigned long baud);
  int available();
  int read();
  size_t write(const uint8_t* bytes, size_t size);
};
extern HardwareSerial Serial;
void delay(uint32_t milliseconds);
void setup();
void loop();
