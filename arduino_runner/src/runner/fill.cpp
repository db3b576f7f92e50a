#include "fill.h"

#include <string.h>

namespace runner {
namespace {

enum Type : uint8_t {  // TfLiteType
  kFloat32 = 1, kInt32 = 2, kUInt8 = 3, kInt64 = 4, kBool = 6, kInt16 = 7, kInt8 = 9,
  kUInt64 = 13, kUInt32 = 16, kUInt16 = 17,
};

size_t Width(uint8_t type) {
  switch (type) {
    case kUInt8: case kInt8: case kBool: return 1;
    case kInt16: case kUInt16: return 2;
    case kFloat32: case kInt32: case kUInt32: return 4;
    case kInt64: case kUInt64: return 8;
    default: return 0;
  }
}

// The element that the state x stands for, little-endian like every board we know.
void Put(uint8_t type, uint32_t x, uint8_t* to) {
  if (type == kFloat32) {
    const float value = static_cast<float>(static_cast<int32_t>(x >> 24) - 128) / 32.0f;
    memcpy(to, &value, sizeof value);
    return;
  }
  const size_t width = Width(type);
  const uint32_t bits = type == kBool ? x >> 31 : width == 1 ? x >> 24 : width == 2 ? x >> 16 : x >> 31;
  for (size_t i = 0; i < width; i++) to[i] = i < 4 ? static_cast<uint8_t>(bits >> (8 * i)) : 0;
}

}  // namespace

bool CanFill(uint8_t type) { return Width(type) != 0; }

bool Fill(uint8_t type, uint32_t seed, uint32_t input, uint8_t* data, size_t size) {
  const size_t width = Width(type);
  if (width == 0) return false;
  uint32_t x = seed ^ (0x9E3779B9u * (input + 1));
  if (x == 0) x = 1;
  for (size_t at = 0; at + width <= size; at += width) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    Put(type, x, data + at);
  }
  return true;
}

}  // namespace runner
