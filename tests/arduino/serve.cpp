// The runner's session on fakes, on standard input and output: what stands behind a serial line.
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "fakes.h"

using namespace runner;

namespace {

class PipeBoard : public FakeBoard {
 public:
  void Send(const uint8_t* data, size_t size) override {
    while (size > 0) {
      const ssize_t done = write(1, data, size);
      if (done <= 0) _exit(0);
      data += done;
      size -= static_cast<size_t>(done);
    }
  }
  uint32_t Millis() override {
    using namespace std::chrono;
    return static_cast<uint32_t>(
        duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count());
  }
};

alignas(16) uint8_t g_store[1 << 16];
uint8_t g_receive[512 + kFrameExtra], g_reply[512 + kFrameExtra];
uint32_t g_entries[64];

}  // namespace

int main() {
  PipeBoard board;
  FakeEngine engine;
  const std::vector<uint8_t> builtin = FakeModel(500);
  const BuiltinModel models[] = {{"built in", builtin.data(), 16}};
  Store store(g_store, sizeof g_store, models, 1);
  LatencyLog log(&board, g_entries, 64);
  Session session(&board, &engine, &store, &log, {g_receive, g_reply, sizeof g_receive});
  uint8_t byte;
  while (read(0, &byte, 1) == 1) session.Take(byte);
  return 0;
}
