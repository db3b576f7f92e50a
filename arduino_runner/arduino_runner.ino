// Measures TFLite Micro models on this board, asked by `tflm-plan measure` and `tflm-plan profile`.
//
// The board is wired up here; all the rest is portable: src/runner (protocol, arena, latencies)
// and src/lean (parameters in flash). Chips of Espressif's are wired up in src/esp, as with ESP-IDF.
// README.md says which TFLM library to install.
//
// Arduino compiles a library because a sketch includes its header, and does not find one that
// __has_include names (github.com/arduino/arduino-cli/issues/1782): so a flag says which.
#if defined(RUNNER_TFLM_2023)
#include <TensorFlowLite.h>
#elif defined(RUNNER_MICROTFLITE)
#include <MicroTFLite.h>
#else
#include <Chirale_TensorFlowLite.h>
#endif

#include "models.h"
#include "src/runner/tflm_engine.h"

#if defined(ARDUINO_ARCH_ESP32)

#include "esp_serial.h"
#include "src/esp/esp_runner.h"

namespace {
runner::ArduinoPort port;
}

void setup() {
  runner::StartEspRunner(&port, runner::TflmEngine(), runner::kModels, runner::kModelCount);
}

void loop() { delay(1000); }  // the runner is a task of its own

#else

#include "arduino_board.h"
#include "src/runner/session.h"

#ifndef RUNNER_STORE_BYTES  // RAM for an uploaded model and the arena
#if defined(ARDUINO_PORTENTA_H7_M7) || defined(ARDUINO_NICLA_VISION) || defined(ARDUINO_GIGA)
#define RUNNER_STORE_BYTES (384 * 1024)
#else
#define RUNNER_STORE_BYTES (144 * 1024)
#endif
#endif
#ifndef RUNNER_PAYLOAD_BYTES
#define RUNNER_PAYLOAD_BYTES 1024
#endif
#ifndef RUNNER_LOG_ENTRIES  // latencies: 4 bytes each
#define RUNNER_LOG_ENTRIES 2048
#endif

namespace {

alignas(16) uint8_t store_bytes[RUNNER_STORE_BYTES];
uint8_t receive_bytes[RUNNER_PAYLOAD_BYTES + runner::kFrameExtra];
uint8_t reply_bytes[RUNNER_PAYLOAD_BYTES + runner::kFrameExtra];
uint32_t log_entries[RUNNER_LOG_ENTRIES];

runner::ArduinoBoard board;
runner::Store store(store_bytes, sizeof store_bytes, runner::kModels, runner::kModelCount);
runner::LatencyLog latencies(&board, log_entries, RUNNER_LOG_ENTRIES);

runner::Session& TheSession() {  // made on first use: the engine registers its operators then
  static runner::Session session(&board, runner::TflmEngine(), &store, &latencies,
                                 {receive_bytes, reply_bytes, sizeof receive_bytes});
  return session;
}

}  // namespace

void setup() {
  board.Begin();
  TheSession();
}

void loop() {
  uint8_t byte;
  while (board.Receive(&byte)) TheSession().Take(byte);
}

#endif
