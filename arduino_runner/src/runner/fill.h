// Generated inputs: schema/protocol.md, section 5. The host makes the same ones.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace runner {

// Fills a tensor of a TfLiteType; false for types for which there are no values.
bool Fill(uint8_t type, uint32_t seed, uint32_t input, uint8_t* data, size_t size);
bool CanFill(uint8_t type);

}  // namespace runner
