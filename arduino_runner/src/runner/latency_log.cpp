#include "latency_log.h"

namespace runner {
namespace {
constexpr uint32_t kNoEntry = 0xFFFFFFFF;
}

void LatencyLog::BeginRun(bool keep, bool operators) {
  keep_ = keep && used_ < room_;
  operators_ = operators && keep_;
  total_ = used_;
  if (keep_) used_++;
  events_ = 0;
  lost_ = 0;
  start_millis_ = board_->Millis();
  start_ = board_->Ticks();
}

void LatencyLog::EndRun() {
  const uint32_t took = Now() - start_;
  if (!keep_) return;
  entries_[total_] = took;
  // The counter may have wrapped: then no difference of this run can be trusted.
  const uint64_t millis = board_->Millis() - start_millis_;
  if (millis * board_->facts().tick_hz / 1000 < 0xFFFF0000u) return;
  for (size_t i = total_; i < used_; i++) entries_[i] = kUnknown;
}

uint32_t LatencyLog::BeginEvent() {
  const uint32_t entered = board_->Ticks();
  events_++;
  if (!operators_ || used_ >= room_) {
    lost_ += board_->Ticks() - entered;
    return kNoEntry;
  }
  const uint32_t handle = static_cast<uint32_t>(used_++);
  const uint32_t left = board_->Ticks();
  lost_ += left - entered;
  entries_[handle] = left - lost_;
  return handle;
}

void LatencyLog::EndEvent(uint32_t handle) {
  const uint32_t entered = board_->Ticks();
  if (handle < used_) entries_[handle] = entered - lost_ - entries_[handle];
  lost_ += board_->Ticks() - entered;
}

}  // namespace runner
