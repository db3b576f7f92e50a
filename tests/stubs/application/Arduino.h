// Of the Arduino core: what a sketch prints.
#pragma once

#include <cstdio>

struct {
  void begin(long) {}
  void println(const char* words) { std::puts(words); }
} Serial;
