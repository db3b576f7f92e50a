// CRC-32 as in zlib and Ethernet, a nibble at a time: 64 bytes of table instead of 1 KB.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace runner {

// The CRC of `data` appended to what `before` is the CRC of (0: of nothing).
uint32_t Crc32(const void* data, size_t size, uint32_t before = 0);

}  // namespace runner
