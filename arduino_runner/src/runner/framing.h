// Frames on a serial line, as schema/protocol.md, section 1.
//
//   wire    00 | COBS( frame ) | 00
//   frame   type u8 | status u8 | sequence u16 | length u16 | payload | crc u32
//
// The receiver decodes as bytes arrive, into the one buffer it was given; the sender encodes
// straight out of the frame. This file must not know what types and payloads mean.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

namespace runner {

constexpr size_t kFrameHead = 6;
constexpr size_t kFrameExtra = kFrameHead + 4;  // head and crc

struct Frame {
  uint8_t type;
  uint8_t status;
  uint16_t sequence;
  uint16_t length;
  const uint8_t* payload;  // within the receiver's buffer, until the next Take()
  uint32_t crc;
};

class FrameReceiver {
 public:
  // `buffer` holds one decoded frame; what does not fit is a bad frame.
  FrameReceiver(uint8_t* buffer, size_t size) : buffer_(buffer), size_(size) {}

  // Takes one byte off the line; true when it ended a good frame.
  bool Take(uint8_t byte, Frame* frame);

  // Frames dropped since the start: COBS, length, crc, or longer than the buffer.
  uint32_t bad_frames() const { return bad_frames_; }

 private:
  void Append(uint8_t byte);
  bool Check(Frame* frame) const;
  void Reset();

  uint8_t* buffer_;
  size_t size_;
  size_t used_ = 0;
  uint8_t run_ = 0;        // bytes that the current COBS code still announces
  bool any_ = false;       // a code was seen since the last zero
  bool maximal_ = false;   // that code was 255: no zero follows its run
  bool too_long_ = false;
  uint32_t bad_frames_ = 0;
};

// Where encoded bytes go.
class Line {
 public:
  virtual void Send(const uint8_t* data, size_t size) = 0;

 protected:
  ~Line() = default;
};

// Builds one frame in a buffer, and sends it as often as wanted.
class FrameBuilder {
 public:
  FrameBuilder(uint8_t* buffer, size_t size) : buffer_(buffer), size_(size) {}

  // A writer of at most `limit` bytes of payload.
  Writer Payload(size_t limit) const {
    const size_t room = size_ - kFrameExtra;
    return Writer(buffer_ + kFrameHead, limit < room ? limit : room);
  }
  // Closes the frame around `length` bytes of payload.
  void Close(uint8_t type, uint8_t status, uint16_t sequence, size_t length);
  void SendTo(Line* line) const;
  size_t size() const { return used_; }

 private:
  uint8_t* buffer_;
  size_t size_, used_ = 0;
};

// Encodes `size` bytes with COBS, between two zeros.
void SendEncoded(const uint8_t* data, size_t size, Line* line);

}  // namespace runner
