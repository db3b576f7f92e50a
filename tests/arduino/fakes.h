// A board, an engine and a model for tests: small, deterministic, and strict with their caller.
#pragma once
#include <string.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "runner/board.h"
#include "runner/engine.h"
#include "runner/session.h"

namespace runner {

class FakeBoard : public Board {
 public:
  FakeBoard() {
    facts_.board = "fake";
    facts_.core = "none";
    facts_.firmware = "test";
    facts_.clock = "steps";
    facts_.clock_hz = 64000000;
    facts_.tick_hz = 1000000;
    facts_.reset = 1;
  }
  void Send(const uint8_t* data, size_t size) override { sent.insert(sent.end(), data, data + size); }
  const BoardFacts& facts() const override { return facts_; }
  uint32_t Ticks() override { return ticks += tick_step; }
  uint32_t Millis() override { return millis; }
  uint32_t StaticRam() override { return 1234; }
  uint32_t StackSize() override { return 8192; }
  void PaintStack() override { painted++; }
  uint32_t StackUsed() override { return 777; }

  BoardFacts facts_;
  std::vector<uint8_t> sent;
  uint32_t ticks = 0, tick_step = 1, millis = 0;
  int painted = 0;
};

// A model is "FAKE", version u32, bytes of arena needed u32, flags u8, padding to 16.
enum FakeFlags : uint8_t { kFakeMissing = 1, kFakeInvokeFails = 2, kFakeStrings = 4 };

inline std::vector<uint8_t> FakeModel(uint32_t need, uint8_t flags = 0, uint32_t version = 3) {
  std::vector<uint8_t> bytes(16, 0);
  memcpy(bytes.data(), "FAKE", 4);
  Writer writer(bytes.data() + 4, 12);
  writer.U32(version);
  writer.U32(need);
  writer.U8(flags);
  return bytes;
}

// Two inputs, int8[5] and float32[2], and one output: int8[5], each the input's negative plus the
// number of runs so far. The tensors lie in the arena, and the output where input 0 is: like a
// plan that overlaps them.
class FakeEngine : public Engine {
 public:
  const char* kernels() const override { return "fake"; }
  const char* version() const override { return "none"; }
  const char* target() const override { return ""; }
  bool has_lean() const override { return lean_built; }
  size_t operators() const override { return 3; }
  const char* operator_name(size_t i) const override {
    static const char* const kNames[] = {"CONV_2D", "ADD", "A custom operator"};
    return kNames[i];
  }
  bool Load(const uint8_t* model, size_t size, uint32_t* version) override {
    Release();
    loaded_ = false;
    *version = kUnknown;
    if (size < 13 || memcmp(model, "FAKE", 4) != 0) return false;
    Reader reader(model + 4, size - 4);
    *version = reader.U32();
    need_ = reader.U32();
    flags_ = reader.U8();
    return loaded_ = *version == 3;
  }
  const char* MissingOperator() override { return flags_ & kFakeMissing ? "SVDF" : nullptr; }
  bool Fits(uint8_t* arena, size_t room, size_t size, bool lean) override {
    if (size > room) abort();
    if (size) memset(arena, 0xA5, size);
    return loaded_ && size >= need_ - (lean ? 100 : 0);
  }
  bool Build(uint8_t* arena, size_t size, bool lean, LatencyLog* log) override {
    if (!loaded_ || size < need_ - (lean ? 100 : 0)) return false;
    arena_ = arena;
    size_ = size;
    log_ = log;
    runs_ = 0;
    return true;
  }
  bool AllocateTensors() override { return arena_ != nullptr; }
  ArenaUse Use() const override {
    ArenaUse use;
    use.used = need_;
    use.head = need_ / 2;
    use.tail = need_ - need_ / 2;
    return use;
  }
  size_t inputs() const override { return arena_ ? 2 : 0; }
  size_t outputs() const override { return arena_ ? 1 : 0; }
  bool Input(size_t index, TensorView* view) override {
    if (!arena_) abort();
    view->rank = 1;
    view->type = index ? 1 : flags_ & kFakeStrings ? 5 : 9;
    view->dims[0] = index ? 2 : 5;
    view->size = index ? 8 : 5;
    view->data = arena_ + (index ? 16 : 0);
    return true;
  }
  bool Output(size_t, TensorView* view) override { return Input(0, view); }
  bool Invoke() override {
    if (!arena_) abort();
    if (flags_ & kFakeInvokeFails) return false;
    for (int i = 0; i < 3; i++) {
      const uint32_t outer = log_->BeginEvent();
      const uint32_t inner = log_->BeginEvent();
      log_->EndEvent(inner);
      log_->EndEvent(outer);
    }
    runs_++;
    for (int i = 0; i < 5; i++) arena_[i] = static_cast<uint8_t>(runs_ - arena_[i]);
    return true;
  }
  void Release() override { arena_ = nullptr; }

  bool lean_built = true;

 private:
  bool loaded_ = false;
  uint32_t need_ = 0;
  uint8_t flags_ = 0;
  uint8_t* arena_ = nullptr;
  size_t size_ = 0;
  LatencyLog* log_ = nullptr;
  int runs_ = 0;
};

// A session on fakes, with a host's side: requests in, replies out.
struct Reply {
  uint8_t type, status;
  uint16_t sequence;
  std::vector<uint8_t> payload;
};

struct Bench {
  explicit Bench(size_t payload = 256, size_t store_bytes = 4096, size_t log_room = 64)
      : block(store_bytes + 16), entries(log_room), receive(payload + kFrameExtra),
        reply(payload + kFrameExtra), builtin(FakeModel(500)),
        store(Aligned(), store_bytes, models, 1), log(&board, entries.data(), log_room),
        session(&board, &engine, &store, &log, {receive.data(), reply.data(), receive.size()}) {
    models[0] = {"built in", builtin.data(), static_cast<uint32_t>(builtin.size())};
  }
  uint8_t* Aligned() {
    return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(block.data()) + 15) / 16 * 16);
  }
  void Feed(const std::vector<uint8_t>& bytes) {
    for (uint8_t byte : bytes) session.Take(byte);
  }
  static std::vector<uint8_t> Wire(uint8_t type, uint16_t sequence, const std::vector<uint8_t>& payload) {
    struct Collect : Line {
      void Send(const uint8_t* data, size_t size) override { out.insert(out.end(), data, data + size); }
      std::vector<uint8_t> out;
    } line;
    std::vector<uint8_t> frame(payload.size() + kFrameExtra);
    FrameBuilder builder(frame.data(), frame.size());
    builder.Payload(payload.size()).Bytes(payload.data(), payload.size());
    builder.Close(type, 0, sequence, payload.size());
    builder.SendTo(&line);
    return line.out;
  }
  std::vector<Reply> Replies() {
    std::vector<uint8_t> buffer(8192);
    FrameReceiver receiver(buffer.data(), buffer.size());
    std::vector<Reply> found;
    Frame frame;
    for (uint8_t byte : board.sent)
      if (receiver.Take(byte, &frame))
        found.push_back({frame.type, frame.status, frame.sequence,
                         std::vector<uint8_t>(frame.payload, frame.payload + frame.length)});
    board.sent.clear();
    return found;
  }
  // One request; the final reply.
  Reply Ask(uint8_t type, const std::vector<uint8_t>& payload) {
    Feed(Wire(type, ++sequence, payload));
    std::vector<Reply> replies = Replies();
    if (replies.empty()) return {0, 0xFF, 0, {}};
    return replies.back();
  }

  FakeBoard board;
  FakeEngine engine;
  std::vector<uint8_t> block;
  std::vector<uint32_t> entries;
  std::vector<uint8_t> receive, reply, builtin;
  BuiltinModel models[1];
  Store store;
  LatencyLog log;
  Session session;
  uint16_t sequence = 0;
};

inline std::vector<uint8_t> Pack(const char* layout, std::initializer_list<uint32_t> values,
                                 const std::vector<uint8_t>& rest = {}) {
  std::vector<uint8_t> out(64 + rest.size());
  Writer writer(out.data(), out.size());
  for (uint32_t value : values) {
    if (*layout == 'b') writer.U8(static_cast<uint8_t>(value));
    if (*layout == 'h') writer.U16(static_cast<uint16_t>(value));
    if (*layout == 'i') writer.U32(value);
    layout++;
  }
  writer.Bytes(rest.data(), rest.size());
  out.resize(writer.used());
  return out;
}

}  // namespace runner
