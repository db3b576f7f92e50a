// The smallest arena that works, by bisection.
//
// Persistent memory is aligned by address, so that one size may do while one that is up to 16
// bytes larger does not; beyond that, larger is never worse. This file must not know arenas.
#pragma once
#include <stdint.h>

namespace runner {

class Trials {
 public:
  virtual bool Works(uint32_t size) = 0;

 protected:
  ~Trials() = default;
};

// The smallest multiple of `step` (0: 16) in [lowest, highest] that works, given that `highest`
// (any number) does; `highest` itself if no multiple does. Counts trials in `trials`.
uint32_t Smallest(Trials* ask, uint32_t lowest, uint32_t highest, uint32_t step, uint16_t* trials);

}  // namespace runner
