// Unit tests of the runner's portable core, and the vectors that host and board share.
//   core_test VECTORS      (lines written by tests/arduino/build.py from protocol_vectors.json)
#include <cstdio>
#include <fstream>
#include <sstream>

#include "fakes.h"
#include "runner/crc32.h"
#include "runner/fill.h"
#include "runner/smallest.h"
#include "runner/stack.h"
#include "check.h"

using namespace runner;


typedef std::vector<uint8_t> Bytes;

static uint32_t Word(const Bytes& bytes, size_t at) {
  Reader reader(bytes.data() + at, bytes.size() < at ? 0 : bytes.size() - at);
  return reader.U32();
}
static uint32_t Half(const Bytes& bytes, size_t at) { return Word(bytes, at) & 0xFFFF; }

static Bytes Hex(const std::string& text) {
  Bytes out;
  if (text == "-") return out;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return out;
}

struct Collect : Line {
  void Send(const uint8_t* data, size_t size) override { out.insert(out.end(), data, data + size); }
  Bytes out;
};

// --- vectors ------------------------------------------------------------------------------------

static std::vector<Bytes> Received(const Bytes& wire, uint32_t* bad = nullptr) {
  Bytes buffer(4096 + kFrameExtra);
  FrameReceiver receiver(buffer.data(), buffer.size());
  std::vector<Bytes> found;
  Frame frame;
  for (uint8_t byte : wire)
    if (receiver.Take(byte, &frame)) {
      Bytes all(kFrameExtra + frame.length);
      FrameBuilder builder(all.data(), all.size());
      builder.Payload(frame.length).Bytes(frame.payload, frame.length);
      builder.Close(frame.type, frame.status, frame.sequence, frame.length);
      found.push_back(all);
    }
  if (bad) *bad = receiver.bad_frames();
  return found;
}

static void Vectors(const char* path) {
  std::ifstream file(path);
  CHECK(file.good());
  std::string line;
  int seen = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string what, a, b, c;
    words >> what;
    seen++;
    if (what == "crc") {
      uint32_t value;
      words >> a >> value;
      const Bytes data = Hex(a);
      CHECK(Crc32(data.data(), data.size()) == value);
      const size_t half = data.size() / 2;
      const uint32_t first = Crc32(data.data(), half);
      CHECK(Crc32(data.data() + half, data.size() - half, first) == value);
    } else if (what == "cobs") {
      words >> a >> b >> c;
      Collect collect;
      const Bytes data = Hex(a);
      SendEncoded(data.data(), data.size(), &collect);
      Bytes expected = Hex(b), also = Hex(c);
      expected.insert(expected.begin(), 0);
      expected.push_back(0);
      also.insert(also.begin(), 0);
      also.push_back(0);
      CHECK(collect.out == expected || (c != "-" && collect.out == also));
    } else if (what == "frame") {
      int type, status, sequence;
      words >> a >> type >> status >> sequence >> b;
      const Bytes payload = Hex(b);
      Bytes all(kFrameExtra + payload.size());
      FrameBuilder builder(all.data(), all.size());
      builder.Payload(payload.size()).Bytes(payload.data(), payload.size());
      builder.Close(static_cast<uint8_t>(type), static_cast<uint8_t>(status),
                    static_cast<uint16_t>(sequence), payload.size());
      uint32_t bad = 9;
      const std::vector<Bytes> found = Received(Hex(a), &bad);
      CHECK(found.size() == 1 && found[0] == all);
      CHECK(bad == 0);
      Collect collect;
      builder.SendTo(&collect);
      CHECK(Received(collect.out) == found);
    } else if (what == "bad") {
      words >> a;
      uint32_t bad = 0;
      CHECK(Received(Hex(a), &bad).empty());
      CHECK(bad >= 1);
    } else if (what == "stream") {
      words >> a;
      std::vector<Bytes> expected;
      while (words >> b) {
        const std::vector<Bytes> one = Received(Hex(b));
        expected.insert(expected.end(), one.begin(), one.end());
      }
      CHECK(Received(Hex(a)) == expected);
    } else if (what == "fill") {
      int type;
      uint32_t seed, input;
      words >> type >> seed >> input >> a;
      const Bytes expected = Hex(a);
      Bytes made(expected.size(), 0xEE);
      CHECK(Fill(static_cast<uint8_t>(type), seed, input, made.data(), made.size()));
      CHECK(made == expected);
    } else {
      CHECK(!"a known kind of vector");
    }
  }
  CHECK(seen > 50);
}

// --- framing ------------------------------------------------------------------------------------

static void TestFramingEveryLength() {
  for (size_t length = 0; length < 600; length++)
    for (int pattern = 0; pattern < 4; pattern++) {
      Bytes payload(length);
      for (size_t i = 0; i < length; i++)
        payload[i] = static_cast<uint8_t>(pattern == 0 ? 0 : pattern == 1 ? 1 + i % 255
                                          : pattern == 2 ? i % 2 : i * 7919 >> 3);
      const Bytes wire = Bench::Wire(5, static_cast<uint16_t>(length), payload);
      CHECK(wire.front() == 0 && wire.back() == 0);
      for (size_t i = 1; i + 1 < wire.size(); i++) CHECK(wire[i] != 0);
      const std::vector<Bytes> found = Received(wire);
      CHECK(found.size() == 1 && found[0].size() == length + kFrameExtra);
      CHECK(found.size() == 1 && std::equal(payload.begin(), payload.end(), found[0].begin() + 6));
    }
}

static void TestReceiverKeepsItsBounds() {
  // The longest frame that fits, and the first that does not.
  for (size_t room : {128u, 129u, 300u}) {
    Bytes buffer(room + kFrameExtra);
    FrameReceiver receiver(buffer.data(), buffer.size());
    Frame frame;
    int good = 0;
    for (uint8_t byte : Bench::Wire(1, 1, Bytes(room, 0x41))) good += receiver.Take(byte, &frame);
    CHECK(good == 1);
    for (uint8_t byte : Bench::Wire(1, 1, Bytes(room + 1, 0x41))) good += receiver.Take(byte, &frame);
    CHECK(good == 1 && receiver.bad_frames() == 1);
    for (uint8_t byte : Bench::Wire(1, 1, {})) good += receiver.Take(byte, &frame);
    CHECK(good == 2);
  }
}

static void TestReaderAndWriter() {
  const uint8_t data[] = {1, 2, 3, 4, 5};
  Reader reader(data, 5);
  CHECK(reader.U16() == 0x0201 && reader.left() == 3 && reader.U32() == 0 && !reader.ok());
  CHECK(reader.U8() == 0);
  uint8_t out[4] = {9, 9, 9, 9};
  Writer writer(out, 3);
  writer.U16(0x0102);
  CHECK(writer.ok());
  writer.U16(0x0304);
  CHECK(!writer.ok() && writer.used() == 2 && out[2] == 9 && out[3] == 9);
}

// --- parts --------------------------------------------------------------------------------------

static void TestStackGauge() {
  std::vector<uint32_t> stack(256, 1);
  StackGauge gauge;
  const uintptr_t low = reinterpret_cast<uintptr_t>(stack.data());
  gauge.Paint(low + 1, low + 1023);
  CHECK(stack[0] == 1 && stack[1] == kStackPattern && stack[254] == kStackPattern && stack[255] == 1);
  CHECK(gauge.Used() == 0);
  stack[100] = 5;
  CHECK(gauge.Used() == (255 - 100) * 4);
  stack[1] = 5;
  CHECK(gauge.Used() == 254 * 4);
  gauge.Paint(low + 512, low + 256);
  CHECK(gauge.Used() == 0);
}

struct Needs : Trials {
  uint32_t needs[16];
  int asked = 0;
  uint32_t lowest = 0xFFFFFFFF;
  bool Works(uint32_t size) override {
    asked++;
    if (size < lowest) lowest = size;
    return size >= needs[size % 16];
  }
};

static void TestSmallest() {
  uint32_t state = 1;
  for (int round = 0; round < 3000; round++) {
    Needs ask;
    for (uint32_t& need : ask.needs) {
      state = state * 1664525u + 1013904223u;
      need = 1000 + (state >> 20) % 16 + (round % 7) * 300;
    }
    const uint32_t steps[] = {1, 2, 4, 8, 16, 32, 0, 3, 100};
    const uint32_t step = steps[round % 9], real = step ? step : 16;
    const uint32_t low = round % 3 ? 0 : 900, high = 20000 + round % 5;
    uint32_t expected = high;
    for (uint32_t size = 0; size <= high; size += real)
      if (size >= low && size >= ask.needs[size % 16]) {
        expected = size;
        break;
      }
    uint16_t trials = 0;
    CHECK(Smallest(&ask, low, high, step, &trials) == expected);
    CHECK(trials == ask.asked && trials < 60);
    CHECK(ask.lowest >= low);
  }
  Needs none;
  for (uint32_t& need : none.needs) need = 5000;
  uint16_t trials = 0;
  CHECK(Smallest(&none, 0, 4999, 16, &trials) == 4999);
  CHECK(Smallest(&none, 6000, 5001, 16, &trials) == 5001);
}

static void TestLatencyLogLeavesItselfOut() {
  FakeBoard board;
  uint32_t entries[8];
  LatencyLog log(&board, entries, 8);
  board.tick_step = 0;
  log.BeginRun(true, true);
  board.ticks += 10;
  const uint32_t outer = log.BeginEvent();
  board.ticks += 100;
  const uint32_t inner = log.BeginEvent();
  board.ticks += 1000;
  log.EndEvent(inner);
  board.ticks += 10000;
  log.EndEvent(outer);
  board.ticks += 100000;
  log.EndRun();
  CHECK(log.used() == 3 && log.events() == 2);
  CHECK(entries[0] == 111110 && entries[1] == 11100 && entries[2] == 1000);
  // A clock of which every reading takes a tick: the log's own readings do not count.
  board.tick_step = 1;
  log.Clear();
  log.BeginRun(true, true);
  for (int i = 0; i < 5; i++) log.EndEvent(log.BeginEvent());
  log.EndRun();
  for (int i = 1; i <= 5; i++) CHECK(entries[i] <= 2);
  CHECK(entries[0] <= 1 + 5 * 3);
  // Longer than the log: the first entries, and all events counted.
  log.Clear();
  log.BeginRun(true, true);
  for (int i = 0; i < 20; i++) log.EndEvent(log.BeginEvent());
  log.EndRun();
  CHECK(log.used() == 8 && log.events() == 20 && log.full());
  log.BeginRun(true, true);
  log.EndEvent(log.BeginEvent());
  log.EndRun();
  CHECK(log.used() == 8 && log.events() == 1);
  // A counter that wrapped.
  log.Clear();
  log.BeginRun(true, true);
  log.EndEvent(log.BeginEvent());
  board.millis += 5000000;
  log.EndRun();
  CHECK(entries[0] == kUnknown && entries[1] == kUnknown);
}

static void TestStore() {
  alignas(16) uint8_t block[64];
  const BuiltinModel models[] = {{"m", block, 7}};
  Store store(block, sizeof block, models, 1);
  CHECK(!store.Begin(65, 0) && store.Begin(33, 5));
  CHECK(store.Append(block, 33) && !store.Append(block, 1) && store.received() == 33);
  store.End();
  CHECK(store.model_size() == 33 && store.arena() == block + 48 && store.arena_room() == 16);
  store.Select(0);
  CHECK(store.model_size() == 7 && store.arena_room() == 64);
  CHECK(store.Begin(64, 0) && store.Append(block, 64));
  store.End();
  CHECK(store.arena_room() == 0);
}

// A model in a block of its own leaves the arena's alone.
static void TestStoreOfTwoBlocks() {
  alignas(16) uint8_t upload[128], arena[64];
  Store store({upload, sizeof upload}, {arena, sizeof arena}, nullptr, 0);
  CHECK(!store.shared() && store.upload_room() == 128 && store.most_arena() == 64);
  CHECK(!store.Begin(129, 0) && store.Begin(100, 0) && store.Append(arena, 64));
  CHECK(store.Append(arena, 36));
  store.End();
  CHECK(store.model() == upload && store.arena() == arena && store.arena_room() == 64);
}

// --- sessions -----------------------------------------------------------------------------------

static void Hello(Bench* bench, uint16_t most = 4096) {
  const Reply reply = bench->Ask(kHello, Pack("ibbhi", {kMagic, 1, 0, most, 0x1234}));
  CHECK(reply.type == (kHello | kReply) && reply.status == kDone && reply.payload.size() == 16);
  CHECK(Word(reply.payload, 0) == kMagic && Word(reply.payload, 8) == 0x1234);
}

static void Upload(Bench* bench, const Bytes& model) {
  const Reply begin = bench->Ask(
      kModelBegin, Pack("ii", {static_cast<uint32_t>(model.size()), Crc32(model.data(), model.size())}));
  CHECK(begin.status == kDone);
  const size_t chunk = Half(begin.payload, 0);
  for (size_t at = 0; at < model.size(); at += chunk) {
    const size_t size = std::min(chunk, model.size() - at);
    const Reply reply = bench->Ask(
        kModelChunk, Pack("i", {static_cast<uint32_t>(at)}, Bytes(model.begin() + at, model.begin() + at + size)));
    CHECK(reply.status == kDone && Word(reply.payload, 0) == at + size);
  }
  CHECK(bench->Ask(kModelEnd, {}).status == kDone);
}

static void Allocated(Bench* bench, const Bytes& model) {
  Hello(bench);
  Upload(bench, model);
  CHECK(bench->Ask(kArena, Pack("i", {0})).status == kDone);
  CHECK(bench->Ask(kAllocate, Pack("hhi", {0, 0, 0})).status == kDone);
}

static void TestWholeSession() {
  Bench bench;
  Allocated(&bench, FakeModel(1000));
  const Reply arena = bench.Ask(kArena, Pack("i", {2000}));
  CHECK(Word(arena.payload, 0) == 2000);
  const Reply found = bench.Ask(kAllocate, Pack("hhi", {kAllocateSmallest, 1, 0}));
  CHECK(found.status == kDone && found.payload.size() == 36);
  CHECK(Word(found.payload, 0) == 2000 && Word(found.payload, 4) == 1000);
  CHECK(Word(found.payload, 16) == 1000 && Word(found.payload, 24) == 777);
  CHECK(Half(found.payload, 28) == 2 && Half(found.payload, 30) == 1 && Half(found.payload, 32) == 0);
  const Reply lean = bench.Ask(kAllocate, Pack("hhi", {kAllocateSmallest | kAllocateLean, 1, 0}));
  CHECK(Word(lean.payload, 16) == 900 && Half(lean.payload, 32) == 1);
  const Reply tensor = bench.Ask(kTensor, Pack("bbh", {0, 0, 1}));
  CHECK(tensor.payload == Pack("bbhii", {1, 1, 0, 8, 2}));

  // Inputs in two parts, one run, its output.
  CHECK(bench.Ask(kInput, Pack("hhi", {0, 0, 0}, {1, 2})).status == kDone);
  CHECK(bench.Ask(kInput, Pack("hhi", {0, 0, 2}, {3, 4, 5})).status == kDone);
  CHECK(bench.Ask(kInvoke, Pack("hhi", {0, 1, 0})).status == kBadState);
  CHECK(bench.Ask(kInput, Pack("hhi", {1, 0, 0}, Bytes(8, 7))).status == kDone);
  const Reply ran = bench.Ask(kInvoke, Pack("hhi", {kInvokeLog | kInvokeOperators, 1, 0}));
  CHECK(ran.status == kDone && ran.payload.size() == 20);
  CHECK(Half(ran.payload, 0) == 1 && Half(ran.payload, 2) == 1 && Word(ran.payload, 4) == 6);
  CHECK(Word(ran.payload, 8) == 7 && Word(ran.payload, 12) == 777);
  const Bytes expected = {0, 255, 254, 253, 252};
  CHECK(Word(ran.payload, 16) == Crc32(expected.data(), 5));
  const Reply output = bench.Ask(kOutput, Pack("hhi", {0, 0, 3}));
  CHECK(output.payload == Pack("iii", {5, Crc32(expected.data(), 5), 3}, {253, 252}));
  const Reply log = bench.Ask(kLog, Pack("i", {5}));
  CHECK(Word(log.payload, 0) == 7 && Word(log.payload, 4) == 5 && log.payload.size() == 16);
  CHECK(bench.Ask(kLog, Pack("i", {8})).status == kBadValue);
  // The same inputs must not be used twice; outputs go with new inputs.
  CHECK(bench.Ask(kInvoke, Pack("hhi", {0, 1, 0})).status == kBadState);
  CHECK(bench.Ask(kInput, Pack("hhi", {0, 0, 0}, {1})).status == kDone);
  CHECK(bench.Ask(kOutput, Pack("hhi", {0, 0, 0})).status == kBadState);
}

static void TestFilledRuns() {
  Bench bench(256, 4096, 20);
  Allocated(&bench, FakeModel(1000));
  const Reply ran = bench.Ask(kInvoke, Pack("hhi", {7, 10, 42}));
  // Seven entries a run: two runs fit into twenty.
  CHECK(ran.status == kDone && Half(ran.payload, 0) == 2 && Word(ran.payload, 8) == 14);
  Bytes input(5);
  Fill(9, 42, 0, input.data(), 5);
  for (uint8_t& value : input) value = static_cast<uint8_t>(1 - value);
  CHECK(Word(ran.payload, 16) == Crc32(input.data(), 5));  // of the first run
  const Reply output = bench.Ask(kOutput, Pack("hhi", {0, 0, 0}));
  CHECK(output.payload[12] == static_cast<uint8_t>(input[0] + 1));  // of the last run
  CHECK(Half(bench.Ask(kInvoke, Pack("hhi", {kInvokeFill, 10, 42})).payload, 0) == 10);
  CHECK(bench.Ask(kInvoke, Pack("hhi", {kInvokeFill, 0, 42})).status == kBadValue);
  CHECK(bench.Ask(kInvoke, Pack("hhi", {0, 2, 42})).status == kBadValue);
}

static void TestRepeatsAreNotDoneAgain() {
  Bench bench;
  Hello(&bench);
  const Bytes model = FakeModel(100);
  bench.Ask(kModelBegin, Pack("ii", {16, Crc32(model.data(), 16)}));
  const Bytes chunk = Bench::Wire(kModelChunk, 50, Pack("i", {0}, Bytes(model.begin(), model.begin() + 8)));
  bench.Feed(chunk);
  bench.Feed(chunk);
  bench.Feed(chunk);
  const std::vector<Reply> replies = bench.Replies();
  CHECK(replies.size() == 3);
  for (const Reply& reply : replies) CHECK(reply.status == kDone && Word(reply.payload, 0) == 8);
  // The same bytes under another number are another request: the offset is wrong now.
  bench.Feed(Bench::Wire(kModelChunk, 51, Pack("i", {0}, Bytes(model.begin(), model.begin() + 8))));
  const std::vector<Reply> other = bench.Replies();
  CHECK(other.size() == 1 && other[0].status == kBadValue && Word(other[0].payload, 0) == 8);
  // HELLO forgets: the same frame again is done again.
  Hello(&bench);
  bench.Feed(chunk);
  CHECK(bench.Replies().back().status == kBadValue);
}

static void TestWorkingComesFirst() {
  Bench bench;
  Allocated(&bench, FakeModel(1000));
  bench.Feed(Bench::Wire(kInvoke, 77, Pack("hhi", {kInvokeFill, 3, 1})));
  const std::vector<Reply> replies = bench.Replies();
  CHECK(replies.size() == 2 && replies[0].status == kWorking && replies[0].sequence == 77);
  CHECK(replies[0].payload == Pack("ii", {0, 3}) && replies[1].status == kDone);
}

static void TestRefusals() {
  Bench bench;
  CHECK(bench.Ask(kMemory, {}).status == kNoSession);
  CHECK(bench.Ask(kHello, Pack("ibbhi", {kMagic + 1, 1, 0, 500, 0})).status == kBadValue);
  CHECK(bench.Ask(kMemory, {}).status == kNoSession);
  Hello(&bench);
  CHECK(bench.Ask(0x55, {}).status == kUnknownCommand);
  CHECK(bench.Ask(kCapabilities, {}).status == kBadLength);
  CHECK(bench.Ask(kArena, Pack("i", {64})).status == kBadState);
  CHECK(bench.Ask(kModelChunk, Pack("i", {0})).status == kBadState);
  CHECK(bench.Ask(kModelEnd, {}).status == kBadState);
  const Reply big = bench.Ask(kModelBegin, Pack("ii", {4097, 0}));
  CHECK(big.status == kModelTooBig && Word(big.payload, 0) == 4096);
  CHECK(bench.Ask(kModelBegin, Pack("ii", {0xFFFFFFFF, 0})).status == kModelTooBig);
  CHECK(bench.Ask(kModelSelect, Pack("hh", {1, 0})).status == kBadValue);

  // Too much, damaged, no model, another schema.
  bench.Ask(kModelBegin, Pack("ii", {4, 0}));
  const Reply beyond = bench.Ask(kModelChunk, Pack("i", {0}, Bytes(5, 1)));
  CHECK(beyond.status == kBadLength && Word(beyond.payload, 0) == 4);
  CHECK(bench.Ask(kModelEnd, {}).status == kBadLength);
  bench.Ask(kModelChunk, Pack("i", {0}, Bytes(4, 1)));
  const Bytes four(4, 1);
  const Reply damaged = bench.Ask(kModelEnd, {});
  CHECK(damaged.status == kModelDamaged && Word(damaged.payload, 0) == Crc32(four.data(), 4));
  CHECK(bench.Ask(kArena, Pack("i", {64})).status == kBadState);
  bench.Ask(kModelBegin, Pack("ii", {4, Crc32(four.data(), 4)}));
  bench.Ask(kModelChunk, Pack("i", {0}, four));
  CHECK(bench.Ask(kModelEnd, {}).status == kModelUnsupported);
  const Bytes old = FakeModel(10, 0, 2);
  bench.Ask(kModelBegin, Pack("ii", {16, Crc32(old.data(), 16)}));
  bench.Ask(kModelChunk, Pack("i", {0}, old));
  const Reply schema = bench.Ask(kModelEnd, {});
  CHECK(schema.status == kModelUnsupported && Word(schema.payload, 0) == 2);
}

static void TestRefusalsOfRuns() {
  Bench bench;
  Hello(&bench);
  Upload(&bench, FakeModel(1000, kFakeMissing));
  CHECK(bench.Ask(kAllocate, Pack("hhi", {0, 0, 0})).status == kBadState);
  const Reply large = bench.Ask(kArena, Pack("i", {4090}));
  CHECK(large.status == kArenaTooBig && Word(large.payload, 0) == 4096 - 16);
  CHECK(bench.Ask(kArena, Pack("i", {2000})).status == kDone);
  const Reply missing = bench.Ask(kAllocate, Pack("hhi", {0, 0, 0}));
  CHECK(missing.status == kOperatorMissing);
  CHECK(std::string(missing.payload.begin() + 4, missing.payload.end()) == "SVDF");
  CHECK(bench.Ask(kTensor, Pack("bbh", {0, 0, 0})).status == kBadState);

  Upload(&bench, FakeModel(1000));
  bench.Ask(kArena, Pack("i", {999}));
  const Reply failed = bench.Ask(kAllocate, Pack("hhi", {kAllocateSmallest, 0, 0}));
  CHECK(failed.status == kAllocateFailed && Word(failed.payload, 0) == 999);
  CHECK(bench.Ask(kInvoke, Pack("hhi", {kInvokeFill, 1, 0})).status == kBadState);
  bench.engine.lean_built = false;
  CHECK(bench.Ask(kAllocate, Pack("hhi", {kAllocateLean, 0, 0})).status == kBadValue);

  Allocated(&bench, FakeModel(1000, kFakeInvokeFails));
  CHECK(bench.Ask(kInvoke, Pack("hhi", {kInvokeFill, 1, 0})).status == kInvokeFailed);
  CHECK(bench.Ask(kOutput, Pack("hhi", {0, 0, 0})).status == kBadState);
  CHECK(bench.Ask(kTensor, Pack("bbh", {2, 0, 0})).status == kBadValue);
  CHECK(bench.Ask(kTensor, Pack("bbh", {1, 0, 1})).status == kBadValue);
  CHECK(bench.Ask(kInput, Pack("hhi", {1, 0, 0})).status == kBadValue);
  CHECK(bench.Ask(kInput, Pack("hhi", {2, 0, 0})).status == kBadValue);
  CHECK(bench.Ask(kInput, Pack("hhi", {0, 0, 0}, Bytes(6, 0))).status == kBadLength);
  CHECK(bench.Ask(kInput, Pack("hhi", {0, 0, 4}, Bytes(1, 0))).status == kBadValue);
  Allocated(&bench, FakeModel(1000, kFakeStrings));
  const Reply type = bench.Ask(kInvoke, Pack("hhi", {kInvokeFill, 1, 0}));
  CHECK(type.status == kTypeUnsupported && Word(type.payload, 0) == 5);
}

static void TestBuiltinModelAndSteps() {
  Bench bench;
  Hello(&bench);
  const Reply selected = bench.Ask(kModelSelect, Pack("hh", {0, 0}));
  CHECK(selected.status == kDone && Word(selected.payload, 0) == 16);
  CHECK(Word(bench.Ask(kArena, Pack("i", {0})).payload, 0) == 4096);
  CHECK(bench.Ask(kAllocate, Pack("hhi", {0, 0, 0})).status == kDone);
  CHECK(bench.Ask(kInvoke, Pack("hhi", {kInvokeFill, 1, 0})).status == kDone);
  // A step back discards what is behind it.
  CHECK(bench.Ask(kArena, Pack("i", {600})).status == kDone);
  CHECK(bench.Ask(kOutput, Pack("hhi", {0, 0, 0})).status == kBadState);
  CHECK(bench.Ask(kInvoke, Pack("hhi", {kInvokeFill, 1, 0})).status == kBadState);
  CHECK(bench.Ask(kModelBegin, Pack("ii", {16, 0})).status == kDone);
  CHECK(bench.Ask(kArena, Pack("i", {600})).status == kBadState);
}

static void TestCapabilitiesInParts() {
  Bench bench(128);
  Hello(&bench);
  std::vector<std::pair<int, Bytes>> items;
  for (uint16_t first = 0, total = 1; first < total;) {
    const Reply reply = bench.Ask(kCapabilities, Pack("h", {first}));
    CHECK(reply.status == kDone && reply.payload.size() <= 128);
    total = static_cast<uint16_t>(Half(reply.payload, 0));
    CHECK(Half(reply.payload, 2) == first);
    for (size_t at = 4; at < reply.payload.size(); at += 2u + reply.payload[at + 1], first++)
      items.push_back({reply.payload[at], Bytes(reply.payload.begin() + at + 2,
                                                reply.payload.begin() + at + 2 + reply.payload[at + 1])});
  }
  CHECK(items.size() == 7 + 8 + 1 + 3);
  int operators = 0, models = 0;
  for (auto& item : items) {
    operators += item.first == kTagOperator;
    models += item.first == kTagModel && item.second.size() == 16;
    if (item.first == kTagFlags) CHECK(Word(item.second, 0) == (1 | 2 | 4 | 32));
  }
  CHECK(operators == 3 && models == 1);
  CHECK(bench.Ask(kCapabilities, Pack("h", {19})).status == kDone);
  CHECK(bench.Ask(kCapabilities, Pack("h", {20})).status == kBadValue);
}

static void TestRepliesKeepTheHostsLimit() {
  Bench bench(2048);
  Hello(&bench, 130);
  const Reply reply = bench.Ask(kCapabilities, Pack("h", {0}));
  CHECK(reply.status == kDone && reply.payload.size() <= 130 && reply.payload.size() > 60);
  CHECK(Half(bench.Ask(kModelBegin, Pack("ii", {16, 0})).payload, 0) == 2044);  // of requests
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Vectors(argv[1]);
  TestFramingEveryLength();
  TestReceiverKeepsItsBounds();
  TestReaderAndWriter();
  TestStackGauge();
  TestSmallest();
  TestLatencyLogLeavesItselfOut();
  TestStore();
  TestStoreOfTwoBlocks();
  TestWholeSession();
  TestFilledRuns();
  TestRepeatsAreNotDoneAgain();
  TestWorkingComesFirst();
  TestRefusals();
  TestRefusalsOfRuns();
  TestBuiltinModelAndSteps();
  TestCapabilitiesInParts();
  TestRepliesKeepTheHostsLimit();
  std::printf("%d checks, %d failures\n", g_checks, g_failures);
  return g_failures != 0;
}
