#include "stack.h"

namespace runner {

void StackGauge::Paint(uintptr_t limit, uintptr_t top) {
  limit = (limit + 3) & ~static_cast<uintptr_t>(3);
  top &= ~static_cast<uintptr_t>(3);
  if (top < limit) top = limit;
  limit_ = reinterpret_cast<volatile uint32_t*>(limit);
  top_ = reinterpret_cast<volatile uint32_t*>(top);
  for (volatile uint32_t* word = limit_; word < top_; word++) *word = kStackPattern;
}

size_t StackGauge::Used() const {
  volatile uint32_t* word = limit_;
  while (word < top_ && *word == kStackPattern) word++;
  return static_cast<size_t>(top_ - word) * sizeof(uint32_t);
}

}  // namespace runner
