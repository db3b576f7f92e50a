#include "esp_board.h"

#if defined(ESP_PLATFORM)

#include "esp_cpu.h"
#include "esp_heap_caps.h"
#include "esp_rom_sys.h"
#include "esp_system.h"
#include "esp_timer.h"
#include "sdkconfig.h"

#ifndef RUNNER_BOARD
#define RUNNER_BOARD CONFIG_IDF_TARGET  // "esp32s3": the board of that name in `tflm-plan targets`
#endif
#ifndef RUNNER_FREE_BYTES  // internal RAM that is left to drivers
#define RUNNER_FREE_BYTES (24 * 1024)
#endif
#ifndef RUNNER_MODEL_BYTES  // PSRAM that is taken for an uploaded model, at most
#define RUNNER_MODEL_BYTES (4 * 1024 * 1024)
#endif
#ifndef RUNNER_COUNT_MICROS  // 1: for runs in which the counter of cycles would wrap
#define RUNNER_COUNT_MICROS 0
#endif

#if CONFIG_IDF_TARGET_ARCH_XTENSA
#define RUNNER_CORE "Xtensa"
#else
#define RUNNER_CORE "RISC-V"
#endif

// From ESP-IDF's linker scripts. Absent ones are null.
extern "C" {
extern char _data_start __attribute__((weak));
extern char _data_end __attribute__((weak));
extern char _bss_start __attribute__((weak));
extern char _bss_end __attribute__((weak));
}

namespace runner {
namespace {

constexpr uint32_t kMicros = 1000000;
constexpr uint32_t kInternalRam = MALLOC_CAP_INTERNAL | MALLOC_CAP_8BIT;
constexpr size_t kAlignment = 16;

uint32_t Span(const char* start, const char* end) {
  return start && end > start ? static_cast<uint32_t>(end - start) : 0;
}

uint8_t ResetCause() {
  switch (esp_reset_reason()) {
    case ESP_RST_POWERON:
    case ESP_RST_EXT:
    case ESP_RST_BROWNOUT: return 1;
    case ESP_RST_INT_WDT:
    case ESP_RST_TASK_WDT:
    case ESP_RST_WDT: return 2;
    case ESP_RST_PANIC: return 3;
    default: return 0;
  }
}

Block Take(size_t size, uint32_t kind) {
  size = size / kAlignment * kAlignment;
  void* bytes = size ? heap_caps_aligned_alloc(kAlignment, size, kind) : nullptr;
  return {static_cast<uint8_t*>(bytes), bytes ? size : 0};
}

}  // namespace

bool EspBoard::Begin() {
  facts_.board = RUNNER_BOARD;
  facts_.core = RUNNER_CORE;
  facts_.firmware = "esp_runner 1.0";
  facts_.clock_hz = esp_rom_get_cpu_ticks_per_us() * kMicros;
  facts_.clock = RUNNER_COUNT_MICROS ? "esp_timer" : "cycles";
  facts_.tick_hz = RUNNER_COUNT_MICROS ? kMicros : facts_.clock_hz;
  facts_.reset = ResetCause();
  return port_->Begin();
}

uint32_t EspBoard::Ticks() {
  return RUNNER_COUNT_MICROS ? static_cast<uint32_t>(esp_timer_get_time())
                             : static_cast<uint32_t>(esp_cpu_get_cycle_count());
}

uint32_t EspBoard::Millis() { return static_cast<uint32_t>(esp_timer_get_time() / 1000); }

uint32_t EspBoard::StaticRam() {
  const uint32_t bytes = Span(&_data_start, &_data_end) + Span(&_bss_start, &_bss_end);
  return bytes ? bytes : kUnknown;
}

Heap EspBoard::HeapNow() {
  const size_t total = heap_caps_get_total_size(kInternalRam);
  Heap heap;
  heap.used = static_cast<uint32_t>(total - heap_caps_get_free_size(kInternalRam));
  heap.peak = static_cast<uint32_t>(total - heap_caps_get_minimum_free_size(kInternalRam));
  heap.free = static_cast<uint32_t>(heap_caps_get_minimum_free_size(kInternalRam));
  return heap;
}

void __attribute__((noinline)) EspBoard::PaintStack() {
  // FreeRTOS watches the last bytes of a stack. Below this frame Paint() has its own, and Xtensa's
  // windows of registers are spilled there.
  constexpr uintptr_t kWatched = 64, kLive = 256;
  uint32_t here;
  const uintptr_t limit = reinterpret_cast<uintptr_t>(stack_.bytes) + kWatched;
  gauge_.Paint(limit, reinterpret_cast<uintptr_t>(&here) - kLive);
}

EspRam TakeRam() {
  const size_t psram = heap_caps_get_largest_free_block(MALLOC_CAP_SPIRAM);
  const Block upload =
      Take(psram < RUNNER_MODEL_BYTES ? psram : RUNNER_MODEL_BYTES, MALLOC_CAP_SPIRAM);
  const size_t internal = heap_caps_get_largest_free_block(kInternalRam);
  const Block arena = Take(internal > RUNNER_FREE_BYTES ? internal - RUNNER_FREE_BYTES : 0,
                           kInternalRam);
  return {upload.bytes ? upload : arena, arena};
}

}  // namespace runner

#endif
