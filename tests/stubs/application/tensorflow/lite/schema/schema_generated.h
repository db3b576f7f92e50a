// See micro_interpreter.h: a model is whatever lies at the beginning of the file.
#pragma once

namespace tflite {

struct Model {};
inline const Model* GetModel(const void* data) { return static_cast<const Model*>(data); }

}  // namespace tflite
