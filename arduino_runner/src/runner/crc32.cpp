#include "crc32.h"

namespace runner {

uint32_t Crc32(const void* data, size_t size, uint32_t before) {
  static const uint32_t kNibbles[16] = {
      0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
      0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
      0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
  const uint8_t* byte = static_cast<const uint8_t*>(data);
  uint32_t crc = ~before;
  for (size_t i = 0; i < size; i++) {
    crc ^= byte[i];
    crc = kNibbles[crc & 15] ^ (crc >> 4);
    crc = kNibbles[crc & 15] ^ (crc >> 4);
  }
  return ~crc;
}

}  // namespace runner
