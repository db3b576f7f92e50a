// What a test expects: it is counted, and said where it does not hold.
#pragma once

#include <cstdio>

static int g_failures = 0, g_checks = 0;
#define CHECK(what)                                          \
  do {                                                       \
    g_checks++;                                              \
    if (!(what)) {                                           \
      g_failures++;                                          \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
    }                                                        \
  } while (0)
