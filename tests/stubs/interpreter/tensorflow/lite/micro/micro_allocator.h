// See micro_interpreter.h beside it: says what it was given.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tflite {

struct MicroAllocator {
  uint8_t* persistent;
  size_t persistent_size;
  uint8_t* other;
  size_t other_size;

  static MicroAllocator* Create(uint8_t* a, size_t a_size, uint8_t* b, size_t b_size) {
    static MicroAllocator made;
    made = {a, a_size, b, b_size};
    return &made;
  }
};

}  // namespace tflite
