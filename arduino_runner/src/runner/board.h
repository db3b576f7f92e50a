// What the runner asks of the hardware. One class of this kind per board; everything else in
// this folder is free of Arduino, Mbed and registers.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "framing.h"
#include "protocol.h"

namespace runner {

struct BoardFacts {
  const char* board = "unknown";    // id as in `tflm-plan targets`, or any name
  const char* core = "unknown";     // "Cortex-M4"
  const char* firmware = "unknown";
  const char* clock = "micros";     // where ticks come from
  uint32_t clock_hz = kUnknown;     // of the core
  uint32_t tick_hz = 1000000;
  uint8_t reset = 0;                // 0 unknown, 1 power or pin, 2 watchdog, 3 fault
};

struct Heap {
  uint32_t used = kUnknown, peak = kUnknown, free = kUnknown;  // bytes
};

class Board : public Line {
 public:
  virtual const BoardFacts& facts() const = 0;
  // A counter of facts().tick_hz that wraps at 2^32.
  virtual uint32_t Ticks() = 0;
  virtual uint32_t Millis() = 0;
  virtual uint32_t StaticRam() { return kUnknown; }  // .data and .bss
  virtual Heap HeapNow() { return Heap(); }
  // Stack: paint what is free below the caller, and tell how much of it was used since.
  virtual uint32_t StackSize() { return kUnknown; }
  virtual void PaintStack() {}
  virtual uint32_t StackUsed() { return kUnknown; }

 protected:
  ~Board() = default;
};

}  // namespace runner
