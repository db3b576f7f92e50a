// A chip of Espressif's for tests: what the stubs of ESP-IDF declare, on this computer. The line is
// standard input and output, a task runs at once on the stack that it is given. Included once.
#pragma once
#include <poll.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include <chrono>

#include "driver/uart.h"
#include "driver/usb_serial_jtag.h"
#include "esp_cpu.h"
#include "esp_heap_caps.h"
#include "esp_rom_sys.h"
#include "esp_system.h"
#include "esp_timer.h"
#include "freertos/task.h"

#ifndef CHIP_PSRAM  // bytes
#define CHIP_PSRAM (1 << 20)
#endif

namespace chip {

constexpr size_t kInternal = 96 << 10, kPsram = CHIP_PSRAM;
constexpr uint32_t kMegahertz = 240;

inline bool IsPsram(uint32_t caps) { return caps & MALLOC_CAP_SPIRAM; }

// At least one byte, at most as many as fit and are there; 0 after a wait.
inline int Read(void* bytes, size_t most, int milliseconds) {
  pollfd line = {0, POLLIN, 0};
  if (poll(&line, 1, milliseconds) <= 0) return 0;
  const ssize_t count = read(0, bytes, most);
  if (count <= 0) _exit(0);  // the host is gone
  return static_cast<int>(count);
}

inline int Write(const void* bytes, size_t size) {
  const ssize_t count = write(1, bytes, size);
  if (count <= 0) _exit(0);
  return static_cast<int>(count);
}

inline ucontext_t& Home() {
  static ucontext_t home;
  return home;
}

}  // namespace chip

int64_t esp_timer_get_time() {
  using namespace std::chrono;
  return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
}
uint32_t esp_cpu_get_cycle_count() {
  return static_cast<uint32_t>(esp_timer_get_time() * chip::kMegahertz);
}
uint32_t esp_rom_get_cpu_ticks_per_us() { return chip::kMegahertz; }
esp_reset_reason_t esp_reset_reason() { return ESP_RST_TASK_WDT; }

size_t heap_caps_get_total_size(uint32_t caps) {
  return chip::IsPsram(caps) ? chip::kPsram : chip::kInternal;
}
size_t heap_caps_get_free_size(uint32_t caps) { return heap_caps_get_total_size(caps); }
size_t heap_caps_get_minimum_free_size(uint32_t caps) {
  return heap_caps_get_total_size(caps) / 2;
}
size_t heap_caps_get_largest_free_block(uint32_t caps) {
  return heap_caps_get_total_size(caps);
}
void* heap_caps_aligned_alloc(size_t alignment, size_t size, uint32_t caps) {
  return size <= heap_caps_get_total_size(caps) ? aligned_alloc(alignment, size) : nullptr;
}

// Runs the task for good; the test never comes back.
TaskHandle_t xTaskCreateStaticPinnedToCore(TaskFunction_t function, const char*,
                                           uint32_t stack_bytes, void* given, UBaseType_t,
                                           StackType_t* stack, StaticTask_t* task, BaseType_t) {
  static ucontext_t context;
  static TaskFunction_t run;
  static void* argument;
  run = function;
  argument = given;
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = stack_bytes;
  context.uc_link = &chip::Home();
  makecontext(&context, +[] { run(argument); }, 0);
  swapcontext(&chip::Home(), &context);
  return task;
}

esp_err_t uart_driver_install(uart_port_t port, int, int, int, QueueHandle_t*, int) {
  return port == UART_NUM_0 ? ESP_OK : 1;
}
esp_err_t uart_param_config(uart_port_t, const uart_config_t* config) {
  return config->baud_rate == 115200 ? ESP_OK : 1;
}
esp_err_t uart_get_buffered_data_len(uart_port_t, size_t* size) {
  pollfd line = {0, POLLIN, 0};
  *size = poll(&line, 1, 0) > 0 ? 1 : 0;
  return ESP_OK;
}
int uart_read_bytes(uart_port_t, void* bytes, uint32_t length, TickType_t ticks) {
  return chip::Read(bytes, length, static_cast<int>(ticks));
}
int uart_write_bytes(uart_port_t, const void* bytes, size_t size) {
  size_t done = 0;
  while (done < size)
    done += static_cast<size_t>(chip::Write(static_cast<const char*>(bytes) + done, size - done));
  return static_cast<int>(size);
}

esp_err_t usb_serial_jtag_driver_install(usb_serial_jtag_driver_config_t* config) {
  return config->rx_buffer_size && config->tx_buffer_size ? ESP_OK : 1;
}
int usb_serial_jtag_read_bytes(void* bytes, uint32_t length, TickType_t ticks) {
  return chip::Read(bytes, length, static_cast<int>(ticks));
}
// A driver takes what it has room for.
int usb_serial_jtag_write_bytes(const void* bytes, size_t size, TickType_t) {
  return chip::Write(bytes, size < 100 ? size : 100);
}
