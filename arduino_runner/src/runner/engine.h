// What the runner asks of a neural-network runtime.
//
// Life: Load -> (Fits)* -> Build -> AllocateTensors -> Invoke*. Memory is the caller's. This file
// must not know which runtime it is.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "latency_log.h"
#include "protocol.h"

namespace runner {

struct TensorView {
  uint8_t type = 0;  // TfLiteType
  uint8_t rank = 0;
  int32_t dims[kMostDimensions] = {};
  uint8_t* data = nullptr;
  uint32_t size = 0;  // bytes
};

struct ArenaUse {
  uint32_t used = kUnknown, head = kUnknown, tail = kUnknown;  // bytes
};

class Engine {
 public:
  virtual const char* kernels() const = 0;  // "cmsis-nn", "reference"
  virtual const char* version() const = 0;  // "current", "arduino-2023"
  virtual const char* target() const = 0;   // target id, or ""
  virtual bool has_lean() const = 0;
  virtual size_t operators() const = 0;
  virtual const char* operator_name(size_t index) const = 0;

  // Whether the bytes are a model of a schema that the runtime reads; else `version` is the
  // version found (kUnknown where they are no model at all).
  virtual bool Load(const uint8_t* model, size_t size, uint32_t* version) = 0;
  // An operator of the loaded model that is not registered, or nullptr.
  virtual const char* MissingOperator() = 0;

  // Whether AllocateTensors succeeds in `size` bytes without anything overlapping. `arena` has
  // `room` >= size bytes, all of which may be written.
  virtual bool Fits(uint8_t* arena, size_t room, size_t size, bool lean) = 0;

  // A new interpreter on the arena.
  virtual bool Build(uint8_t* arena, size_t size, bool lean, LatencyLog* log) = 0;
  virtual bool AllocateTensors() = 0;
  virtual ArenaUse Use() const = 0;
  virtual size_t inputs() const = 0;
  virtual size_t outputs() const = 0;
  // False for an index out of range or a tensor with more than kMostDimensions.
  virtual bool Input(size_t index, TensorView* view) = 0;
  virtual bool Output(size_t index, TensorView* view) = 0;
  virtual bool Invoke() = 0;
  // Forgets interpreter and arena. Load() stays.
  virtual void Release() = 0;

 protected:
  ~Engine() = default;
};

}  // namespace runner
