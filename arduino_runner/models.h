// Models that are compiled in, for those that do not fit into RAM beside their arena.
//
//   tflm-plan export model.tflite arduino_runner/src/models
//
// writes model_model_data.h and .cpp; include the header here and add a line to the list.
#pragma once
#include "src/runner/store.h"

namespace runner {

// {name, data (alignas(16), const: it stays in flash), bytes}
constexpr const BuiltinModel* kModels = nullptr;
constexpr size_t kModelCount = 0;

}  // namespace runner
