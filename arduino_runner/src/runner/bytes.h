// Little-endian integers in byte buffers, with the bounds kept.
//
// A Reader or Writer that ran out of bytes stays bad and yields zeros or drops what is written:
// check ok() once, at the end. This file must not know what the bytes mean.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace runner {

class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : at_(data), left_(size) {}
  uint8_t U8() { return static_cast<uint8_t>(Take(1)); }
  uint16_t U16() { return static_cast<uint16_t>(Take(2)); }
  uint32_t U32() { return Take(4); }
  const uint8_t* rest() const { return at_; }
  size_t left() const { return left_; }
  bool ok() const { return ok_; }

 private:
  uint32_t Take(size_t count) {
    if (left_ < count) {
      ok_ = false;
      left_ = 0;
      return 0;
    }
    uint32_t value = 0;
    for (size_t i = 0; i < count; i++) value |= static_cast<uint32_t>(at_[i]) << (8 * i);
    at_ += count;
    left_ -= count;
    return value;
  }
  const uint8_t* at_;
  size_t left_;
  bool ok_ = true;
};

class Writer {
 public:
  Writer(uint8_t* data, size_t room) : start_(data), room_(room) {}
  void U8(uint8_t value) { Put(value, 1); }
  void U16(uint16_t value) { Put(value, 2); }
  void U32(uint32_t value) { Put(value, 4); }
  void Bytes(const void* data, size_t size) {
    if (size > left()) {
      ok_ = false;
      return;
    }
    if (size) memcpy(start_ + used_, data, size);
    used_ += size;
  }
  void Skip(size_t count) {
    if (count > left())
      ok_ = false;
    else
      used_ += count;
  }
  size_t left() const { return room_ - used_; }
  size_t used() const { return used_; }
  bool ok() const { return ok_; }

 private:
  void Put(uint32_t value, size_t count) {
    if (count > left()) {
      ok_ = false;
      return;
    }
    for (size_t i = 0; i < count; i++) start_[used_++] = static_cast<uint8_t>(value >> (8 * i));
  }
  uint8_t* start_;
  size_t room_, used_ = 0;
  bool ok_ = true;
};

}  // namespace runner
