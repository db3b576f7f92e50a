// Just enough of an interpreter to compile and run what `tflm-plan stream-input --header` writes.
// Ours, not TFLM's: tensors are what a test puts there, Invoke does what it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };

struct TfLiteTensor {
  union {
    char* raw;
    int8_t* int8;
    uint8_t* uint8;
    int32_t* i32;
    float* f;
  } data;
  size_t bytes;
};

namespace tflite {

class MicroInterpreter {
 public:
  TfLiteTensor* input(size_t i) { return &inputs.at(i); }
  TfLiteTensor* output(size_t i) { return &outputs.at(i); }
  TfLiteStatus Invoke() { return invoke(); }

  std::vector<TfLiteTensor> inputs, outputs;
  std::function<TfLiteStatus()> invoke;
};

}  // namespace tflite
