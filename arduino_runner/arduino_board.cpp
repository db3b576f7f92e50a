#if !defined(ARDUINO_ARCH_ESP32)  // those are in src/esp
#include "arduino_board.h"

#if defined(ARDUINO_ARCH_MBED)
#include <malloc.h>
#include <mbed.h>
#include <rtx_os.h>
#endif

#if defined(DWT) && defined(CoreDebug) && __CORTEX_M >= 3
#define RUNNER_HAS_DWT 1  // a counter of core cycles
#else
#define RUNNER_HAS_DWT 0
#endif

// From the linker script, under names of our own: some cores declare them, each with another type.
// Absent ones are null.
#define RUNNER_SYMBOL(name, symbol) extern char name __asm__(symbol) __attribute__((weak))
extern "C" {
RUNNER_SYMBOL(runner_data_start, "__data_start__");
RUNNER_SYMBOL(runner_data_end, "__data_end__");
RUNNER_SYMBOL(runner_bss_start, "__bss_start__");
RUNNER_SYMBOL(runner_bss_end, "__bss_end__");
RUNNER_SYMBOL(runner_heap_start, "__end__");
RUNNER_SYMBOL(runner_heap_limit, "__HeapLimit");
}

namespace runner {
namespace {

constexpr uint32_t kMicros = 1000000;

#if defined(ARDUINO_ARDUINO_NANO33BLE)
constexpr char kBoard[] = "nano33ble", kCore[] = "Cortex-M4";
#elif defined(ARDUINO_NANO_RP2040_CONNECT)
constexpr char kBoard[] = "nanorp2040", kCore[] = "Cortex-M0+";
#elif defined(ARDUINO_PORTENTA_H7_M7)
constexpr char kBoard[] = "portentah7", kCore[] = "Cortex-M7";
#elif defined(ARDUINO_NICLA_VISION)
constexpr char kBoard[] = "niclavision", kCore[] = "Cortex-M7";
#elif defined(ARDUINO_GIGA)
constexpr char kBoard[] = "gigar1", kCore[] = "Cortex-M7";
#else
constexpr char kBoard[] = "unknown", kCore[] = "unknown";
#endif

uint32_t Span(const char* start, const char* end) {
  return start && end > start ? static_cast<uint32_t>(end - start) : 0;
}

#if defined(ARDUINO_ARCH_MBED)
// Limits of the stack of the thread that runs.
bool OwnStack(uintptr_t* limit, uintptr_t* size) {
  const auto* thread = reinterpret_cast<const osRtxThread_t*>(osThreadGetId());
  if (!thread || !thread->stack_mem) return false;
  *limit = reinterpret_cast<uintptr_t>(thread->stack_mem);
  *size = thread->stack_size;
  return true;
}

uint8_t ResetCause() {
#if DEVICE_RESET_REASON
  switch (mbed::ResetReason::get()) {
    case RESET_REASON_POWER_ON:
    case RESET_REASON_PIN_RESET:
    case RESET_REASON_BROWN_OUT: return 1;
    case RESET_REASON_WATCHDOG: return 2;
    case RESET_REASON_LOCKUP: return 3;
    default: return 0;
  }
#else
  return 0;
#endif
}
#endif

}  // namespace

void ArduinoBoard::Begin() {
  facts_.board = kBoard;
  facts_.core = kCore;
  facts_.firmware = "arduino_runner 1.0";
#if defined(ARDUINO_ARCH_MBED)
  facts_.clock_hz = SystemCoreClock;
  facts_.reset = ResetCause();
#endif
#if RUNNER_HAS_DWT
  CoreDebug->DEMCR |= CoreDebug_DEMCR_TRCENA_Msk;
#if __CORTEX_M == 7
  DWT->LAR = 0xC5ACCE55;  // unlock
#endif
  DWT->CYCCNT = 0;
  DWT->CTRL |= DWT_CTRL_CYCCNTENA_Msk;
  facts_.clock = "dwt";
  facts_.tick_hz = SystemCoreClock;
#else
  facts_.clock = "micros";
  facts_.tick_hz = kMicros;
#endif
  Serial.begin(115200);
}

bool ArduinoBoard::Receive(uint8_t* byte) {
  const int read = Serial.available() > 0 ? Serial.read() : -1;
  *byte = static_cast<uint8_t>(read);
  return read >= 0;
}

void ArduinoBoard::Send(const uint8_t* data, size_t size) { Serial.write(data, size); }

uint32_t ArduinoBoard::Ticks() {
#if RUNNER_HAS_DWT
  return DWT->CYCCNT;
#else
  return micros();
#endif
}

uint32_t ArduinoBoard::StaticRam() {
  const uint32_t bytes = Span(&runner_data_start, &runner_data_end) +
                         Span(&runner_bss_start, &runner_bss_end);
  return bytes ? bytes : kUnknown;
}

Heap ArduinoBoard::HeapNow() {
  Heap heap;
#if defined(ARDUINO_ARCH_MBED)
  const struct mallinfo now = mallinfo();
  heap.used = static_cast<uint32_t>(now.uordblks);
  heap.peak = static_cast<uint32_t>(now.arena);  // what malloc ever took from the system
  const uint32_t room = Span(&runner_heap_start, &runner_heap_limit);
  if (room > heap.peak) heap.free = room - heap.peak;
#endif
  return heap;
}

uint32_t ArduinoBoard::StackSize() {
#if defined(ARDUINO_ARCH_MBED)
  uintptr_t limit, size;
  if (OwnStack(&limit, &size)) return static_cast<uint32_t>(size);
#endif
  return kUnknown;
}

void __attribute__((noinline)) ArduinoBoard::PaintStack() {
#if defined(ARDUINO_ARCH_MBED)
  uintptr_t limit, size;
  uint32_t here;  // paint ends below this frame, with room for the frame of Paint()
  constexpr uintptr_t kGuard = 64;
  // RTX keeps a magic word at the limit.
  if (OwnStack(&limit, &size))
    gauge_.Paint(limit + sizeof(uint32_t), reinterpret_cast<uintptr_t>(&here) - kGuard);
#endif
}

uint32_t ArduinoBoard::StackUsed() {
  return StackSize() == kUnknown ? kUnknown : static_cast<uint32_t>(gauge_.Used());
}

}  // namespace runner

#endif
