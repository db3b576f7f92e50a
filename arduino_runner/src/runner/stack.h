// Stack high-water marks by painting.
//
//   limit             deepest             painted_top        here
//     |  pattern  ...    |  touched since     |   live frames  |
//
// The stack grows towards `limit`. Everything between limit and painted_top is filled with a
// pattern; what no longer holds it was used. This file must not know where a board's stack is.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace runner {

constexpr uint32_t kStackPattern = 0xC5A3961E;

class StackGauge {
 public:
  // Fills [limit, top) with the pattern; both are rounded inward to words.
  void Paint(uintptr_t limit, uintptr_t top);
  // Bytes between the deepest word touched since Paint() and its top.
  size_t Used() const;

 private:
  volatile uint32_t* limit_ = nullptr;
  volatile uint32_t* top_ = nullptr;
};

}  // namespace runner
