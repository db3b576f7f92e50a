#include "store.h"

#include <string.h>

namespace runner {

bool Store::Begin(uint32_t size, uint32_t crc) {
  if (size > upload_.size) return false;
  Discard();
  begun_ = true;
  expected_ = size;
  crc_ = crc;
  return true;
}

bool Store::Append(const uint8_t* data, size_t size) {
  if (!begun_ || size > expected_ - received_) return false;
  if (size) memcpy(upload_.bytes + received_, data, size);
  received_ += static_cast<uint32_t>(size);
  return true;
}

void Store::End() {
  begun_ = false;
  model_ = upload_.bytes;
  model_size_ = expected_;
  const size_t rounded = (static_cast<size_t>(expected_) + 15) / 16 * 16;
  if (shared()) uploaded_ = rounded < arena_.size ? rounded : arena_.size;
}

void Store::Select(size_t index) {
  Discard();
  model_ = models_[index].data;
  model_size_ = models_[index].size;
}

void Store::Discard() {
  begun_ = false;
  expected_ = received_ = crc_ = 0;
  model_ = nullptr;
  model_size_ = 0;
  uploaded_ = 0;
}

}  // namespace runner
