#include "esp_runner.h"

#if defined(ESP_PLATFORM)

#include "../runner/session.h"
#include "esp_board.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "sdkconfig.h"

#ifndef RUNNER_STACK_BYTES
#define RUNNER_STACK_BYTES (16 * 1024)
#endif
#ifndef RUNNER_PAYLOAD_BYTES
#define RUNNER_PAYLOAD_BYTES 1024
#endif
#ifndef RUNNER_LOG_ENTRIES  // latencies: 4 bytes each
#define RUNNER_LOG_ENTRIES 2048
#endif

namespace runner {
namespace {

StackType_t g_stack[RUNNER_STACK_BYTES / sizeof(StackType_t)];
StaticTask_t g_task;
uint8_t g_receive[RUNNER_PAYLOAD_BYTES + kFrameExtra];
uint8_t g_reply[RUNNER_PAYLOAD_BYTES + kFrameExtra];
uint32_t g_entries[RUNNER_LOG_ENTRIES];

struct Runner {
  Runner(EspPort* line, Engine* engine, const BuiltinModel* models, size_t count)
      : port(line),
        board(line, {reinterpret_cast<uint8_t*>(g_stack), sizeof g_stack}),
        ram(TakeRam()),
        store(ram.upload, ram.arena, models, count),
        latencies(&board, g_entries, RUNNER_LOG_ENTRIES),
        session(&board, engine, &store, &latencies, {g_receive, g_reply, sizeof g_receive}) {}

  EspPort* port;
  EspBoard board;
  EspRam ram;
  Store store;
  LatencyLog latencies;
  Session session;
};

void Serve(void* given) {
  Runner* runner = static_cast<Runner*>(given);
  uint8_t bytes[64];
  for (;;) {
    const size_t count = runner->port->Read(bytes, sizeof bytes);
    for (size_t i = 0; i < count; i++) runner->session.Take(bytes[i]);
  }
}

}  // namespace

bool StartEspRunner(EspPort* port, Engine* engine, const BuiltinModel* models, size_t count) {
  static Runner runner(port, engine, models, count);
  if (runner.ram.arena.size == 0 || !runner.board.Begin()) return false;
  // The counter of cycles is the core's own, so that the task stays on one.
#if CONFIG_FREERTOS_UNICORE
  constexpr BaseType_t kCore = 0;
#else
  constexpr BaseType_t kCore = 1;
#endif
  return xTaskCreateStaticPinnedToCore(Serve, "runner", sizeof g_stack, &runner,
                                       tskIDLE_PRIORITY + 1, g_stack, &g_task, kCore) != nullptr;
}

}  // namespace runner

#endif
