// Latencies of runs and of the operators in them.
//
//   entries   run 0: total, event 0, event 1, ...   run 1: total, event 0, ...
//
// Events are kept in the order in which they begin. A running event's entry holds its start. What
// the log itself takes is left out of every time: times are those of a clock that stands still
// while the log works. TFLM's own MicroProfiler takes 82 KB; this takes 4 bytes an event.
// This file must not know TFLM.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "board.h"

namespace runner {

class LatencyLog {
 public:
  LatencyLog(Board* board, uint32_t* entries, size_t room)
      : board_(board), entries_(entries), room_(room) {}

  void Clear() { used_ = 0; }
  // Whether a run of `events` events (0: only its total) still fits as a whole.
  bool Fits(size_t events) const { return room_ - used_ >= 1 + events; }
  bool full() const { return used_ >= room_; }

  // keep: whether the run gets entries; operators: whether its events do.
  void BeginRun(bool keep, bool operators);
  void EndRun();
  uint32_t BeginEvent();
  void EndEvent(uint32_t handle);

  size_t used() const { return used_; }
  size_t room() const { return room_; }
  uint32_t entry(size_t i) const { return entries_[i]; }
  // Events begun in the last run, those without an entry included.
  uint32_t events() const { return events_; }

 private:
  uint32_t Now() { return board_->Ticks() - lost_; }

  Board* board_;
  uint32_t* entries_;
  size_t room_;
  size_t used_ = 0;
  size_t total_ = 0;        // entry of the current run's total
  bool keep_ = false, operators_ = false;
  uint32_t events_ = 0;
  uint32_t lost_ = 0;       // ticks that the log itself took in this run
  uint32_t start_ = 0, start_millis_ = 0;
};

}  // namespace runner
