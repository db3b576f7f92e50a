// Fuzzes the frame parser and the session behind it: fuzz SECONDS [SEED].
//
// Streams of good, damaged, cut, repeated and invented frames, in a session on fakes that abort
// when they are misused; sanitizers watch the memory. Deterministic: a round is its seed. Laws:
// every reply is a good frame no longer than the limit, and after any garbage HELLO is answered.
#include <chrono>
#include <cstdio>

#include "fakes.h"
#include "runner/crc32.h"

using namespace runner;
typedef std::vector<uint8_t> Bytes;

static uint32_t g_state;
static uint32_t Random() {
  g_state ^= g_state << 13;
  g_state ^= g_state >> 17;
  g_state ^= g_state << 5;
  return g_state;
}
static uint32_t Below(uint32_t limit) { return Random() % limit; }

static uint32_t Interesting() {
  static const uint32_t kValues[] = {0, 1, 2, 4, 5, 8, 16, 100, 500, 1000, 4096, 4097, 0x7FFFFFFF,
                                     0x80000000, 0xFFFFFFFF, 0xFFFFFFF0, 0xFFFF};
  return Below(3) ? kValues[Below(sizeof kValues / 4)] : Random();
}

static Bytes Blob(size_t most) {
  Bytes out(Below(static_cast<uint32_t>(most) + 1));
  const int kind = static_cast<int>(Below(3));
  for (uint8_t& byte : out) byte = kind == 0 ? 0 : static_cast<uint8_t>(Random() >> (kind * 8));
  return out;
}

static Bytes Request(uint8_t* type) {
  static const uint8_t kTypes[] = {0x01, 0x02, 0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23,
                                   0x24, 0x25, 0x26, 0x27};
  *type = Below(20) ? kTypes[Below(sizeof kTypes)] : static_cast<uint8_t>(Random());
  if (*type == kHello && Below(4))
    return Pack("ibbhi", {kMagic, Below(3), Below(3), Interesting(), Random()});
  if (*type == kInvoke && Below(2)) return Pack("hhi", {Below(8), Below(5), Random()});
  if (*type == kAllocate && Below(2)) return Pack("hhi", {Below(4), Below(40), Below(2000)});
  Bytes payload;
  for (uint32_t words = Below(4); words > 0; words--) {
    const Bytes word = Pack(Below(2) ? "i" : "h", {Interesting()});
    payload.insert(payload.end(), word.begin(), word.end());
  }
  const Bytes more = Blob(Below(4) ? 20 : 400);
  payload.insert(payload.end(), more.begin(), more.end());
  return payload;
}

static void Damage(Bytes* wire) {
  for (uint32_t times = Below(3) + 1; times > 0 && !wire->empty(); times--) {
    const size_t at = Below(static_cast<uint32_t>(wire->size()));
    switch (Below(5)) {
      case 0: (*wire)[at] ^= static_cast<uint8_t>(1u << Below(8)); break;
      case 1: wire->erase(wire->begin() + static_cast<long>(at)); break;
      case 2: wire->insert(wire->begin() + static_cast<long>(at), static_cast<uint8_t>(Random())); break;
      case 3: wire->resize(at); break;
      case 4: (*wire)[at] = static_cast<uint8_t>(Random()); break;
    }
  }
}

static void Check(bool law, const char* what, uint32_t seed) {
  if (law) return;
  std::printf("round %u: %s\n", seed, what);
  std::abort();
}

static void Upload(Bench* bench) {
  const Bytes model = FakeModel(Below(3000), static_cast<uint8_t>(Below(8) ? 0 : Below(8)));
  bench->Ask(kModelBegin, Pack("ii", {16, Crc32(model.data(), model.size())}));
  bench->Ask(kModelChunk, Pack("i", {0}, model));
  bench->Ask(kModelEnd, {});
  if (Below(4)) bench->Ask(kArena, Pack("i", {Below(2) ? 0 : Below(4096)}));
  if (Below(4)) bench->Ask(kAllocate, Pack("hhi", {Below(4), Below(20), 0}));
}

static void Round(uint32_t seed) {
  g_state = seed * 2654435761u + 12345;
  if (g_state == 0) g_state = 1;
  const size_t payload = 128 + Below(200);
  Bench bench(payload, 4096, Below(40) + 1);
  Bytes last;
  for (uint32_t step = Below(60); step > 0; step--) {
    if (Below(6) == 0) Upload(&bench);
    uint8_t type;
    const Bytes body = Request(&type);
    Bytes wire = Below(8) ? Bench::Wire(type, static_cast<uint16_t>(Below(6)), body) : Blob(700);
    if (Below(3) == 0) Damage(&wire);
    if (Below(5) == 0) wire = last;
    bench.Feed(wire);
    last = wire;
    for (const Reply& reply : bench.Replies()) {
      Check(reply.payload.size() <= payload, "a reply longer than the limit", seed);
      Check(reply.type & kReply, "a reply that is none", seed);
    }
    bench.board.millis += Below(200);
  }
  bench.Feed({0});
  bench.Replies();
  const Reply hello = bench.Ask(kHello, Pack("ibbhi", {kMagic, 1, 0, 4096, seed}));
  Check(hello.status == kDone && hello.payload.size() == 16, "HELLO is not answered", seed);
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  uint32_t seed = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1;
  const auto start = std::chrono::steady_clock::now();
  uint32_t rounds = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds)
    for (int i = 0; i < 50; i++, rounds++) Round(seed++);
  std::printf("%u rounds\n", rounds);
  return 0;
}
