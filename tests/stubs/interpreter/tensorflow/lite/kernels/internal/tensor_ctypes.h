// See micro_interpreter.h.
#pragma once

#include "tensorflow/lite/micro/micro_interpreter.h"

namespace tflite {

template <typename T>
T* GetTensorData(TfLiteTensor* tensor) {
  return reinterpret_cast<T*>(tensor->data.raw);
}

}  // namespace tflite
