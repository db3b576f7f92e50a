// Just enough of an interpreter to compile and run the application of docs/firmware.md. Ours, not
// TFLM's: it has one input and one output of a byte each, and Invoke adds 42 to the byte.
// Before anything is written the byte is 7.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

struct TfLiteTensor {
  union {
    int8_t* int8;
  } data;
  size_t bytes;
};

namespace tflite {

class MicroInterpreter {
 public:
  template <unsigned int capacity>
  MicroInterpreter(const Model* model, const MicroMutableOpResolver<capacity>& resolver,
                   uint8_t* arena, size_t arena_size)
      : is_ready_(model != nullptr && resolver.count() == capacity &&
                  reinterpret_cast<uintptr_t>(arena) % 16 == 0 && arena_size > 0) {}

  TfLiteStatus AllocateTensors() { return is_ready_ ? kTfLiteOk : kTfLiteError; }
  TfLiteTensor* input(size_t) { return &input_; }
  TfLiteTensor* output(size_t) { return &output_; }
  TfLiteStatus Invoke() {
    written_ = static_cast<int8_t>(read_ + 42);
    return kTfLiteOk;
  }

 private:
  bool is_ready_;
  int8_t read_ = 7, written_ = 0;
  TfLiteTensor input_{{&read_}, 1}, output_{{&written_}, 1};
};

}  // namespace tflite
