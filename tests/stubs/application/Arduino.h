// Of the Arduino core: what a sketch prints.
#pragma once

#include <cstdio>

struct {
  void begin(long) {}
  void println(const char* words) { std::puts(words); }
  void println(int number) { std::printf("%d\n", number); }
} Serial;

inline void delay(unsigned long) {}
