#include "framing.h"

#include "crc32.h"

namespace runner {

bool FrameReceiver::Take(uint8_t byte, Frame* frame) {
  if (byte == 0) {
    const bool any = any_;
    const bool good = any && run_ == 0 && !too_long_ && Check(frame);
    if (any && !good) bad_frames_++;
    Reset();
    return good;
  }
  if (run_ > 0) {
    Append(byte);
    run_--;
    return false;
  }
  if (any_ && !maximal_) Append(0);  // the zero that the last code stood for
  any_ = true;
  run_ = static_cast<uint8_t>(byte - 1);
  maximal_ = byte == 255;
  return false;
}

void FrameReceiver::Append(uint8_t byte) {
  if (used_ < size_)
    buffer_[used_++] = byte;
  else
    too_long_ = true;
}

bool FrameReceiver::Check(Frame* frame) const {
  if (used_ < kFrameExtra) return false;
  Reader head(buffer_, used_);
  frame->type = head.U8();
  frame->status = head.U8();
  frame->sequence = head.U16();
  frame->length = head.U16();
  if (used_ != kFrameExtra + frame->length) return false;
  frame->payload = buffer_ + kFrameHead;
  Reader tail(buffer_ + used_ - 4, 4);
  frame->crc = tail.U32();
  return frame->crc == Crc32(buffer_, used_ - 4);
}

void FrameReceiver::Reset() {
  used_ = 0;
  run_ = 0;
  any_ = maximal_ = too_long_ = false;
}

void FrameBuilder::Close(uint8_t type, uint8_t status, uint16_t sequence, size_t length) {
  Writer head(buffer_, kFrameHead);
  head.U8(type);
  head.U8(status);
  head.U16(sequence);
  head.U16(static_cast<uint16_t>(length));
  Writer tail(buffer_ + kFrameHead + length, 4);
  tail.U32(Crc32(buffer_, kFrameHead + length));
  used_ = kFrameExtra + length;
}

void FrameBuilder::SendTo(Line* line) const { SendEncoded(buffer_, used_, line); }

void SendEncoded(const uint8_t* data, size_t size, Line* line) {
  const uint8_t zero = 0;
  line->Send(&zero, 1);
  size_t at = 0;
  for (bool more = true; more;) {
    size_t run = 0;
    while (run < 254 && at + run < size && data[at + run] != 0) run++;
    const uint8_t code = static_cast<uint8_t>(run + 1);
    line->Send(&code, 1);
    if (run) line->Send(data + at, run);
    at += run;
    if (run == 254)
      more = at < size;  // a maximal run stands for no zero
    else if ((more = at < size))
      at++;  // the zero that ended the run
  }
  line->Send(&zero, 1);
}

}  // namespace runner
