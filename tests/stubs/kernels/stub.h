// As much of TFLite Micro's interface as src/lean uses, for tests without TFLM: an arena with head,
// temporary memory and tail, eval tensors, registrations, a model's metadata. Written for these
// tests after the documented interface; STUB_2023 leaves out what the library of 2023 lacks.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cstdlib>
#include <string>
#include <vector>

enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };
enum TfLiteType { kTfLiteNoType = 0, kTfLiteFloat32 = 1, kTfLiteInt16 = 7, kTfLiteInt8 = 9 };
enum TfLiteQuantizationType { kTfLiteNoQuantization = 0, kTfLiteAffineQuantization = 1 };

struct TfLiteIntArray {
  int size;
  int data[8];
};
struct TfLiteFloatArray {
  int size;
};
struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
};
struct TfLiteQuantization {
  TfLiteQuantizationType type;
  void* params;
};
struct TfLiteTensor {
  TfLiteQuantization quantization;
};
struct TfLiteEvalTensor {
  TfLiteType type;
  TfLiteIntArray* dims;
};
struct TfLiteNode {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
};
struct TfLiteContext {
  void* impl_;
  void* (*AllocatePersistentBuffer)(TfLiteContext*, size_t);
};
struct TfLiteRegistration {
  void* (*init)(TfLiteContext*, const char*, size_t);
  TfLiteStatus (*prepare)(TfLiteContext*, TfLiteNode*);
};

void MicroPrintf(const char* format, ...);

namespace tflite {

class ErrorReporter {};
class Operator {};
class BuiltinDataAllocator {
 public:
  virtual void* Allocate(size_t size, size_t alignment) = 0;
  virtual void Deallocate(void* data) = 0;
  virtual ~BuiltinDataAllocator() {}
};
enum BuiltinOperator {
  BuiltinOperator_CONV_2D = 3,
  BuiltinOperator_DEPTHWISE_CONV_2D = 4,
  BuiltinOperator_FULLY_CONNECTED = 9
};
struct OpDataFullyConnected {
#ifndef STUB_2023
  bool is_per_channel;
#endif
};

// head ... temp ->            <- tail
class MicroContext {
 public:
  MicroContext(uint8_t* arena, size_t size) : start(arena), temp(arena), tail(arena + size) {}

  uint8_t* Temp(size_t size, size_t alignment) {
    const uintptr_t at = (reinterpret_cast<uintptr_t>(temp) + alignment - 1) / alignment * alignment;
    if (at + size > reinterpret_cast<uintptr_t>(tail)) return nullptr;
    temp = reinterpret_cast<uint8_t*>(at + size);
    live++;
    return reinterpret_cast<uint8_t*>(at);
  }
  void* Persistent(size_t size) {  // like TFLM: looks at the head only
    const uintptr_t at = (reinterpret_cast<uintptr_t>(tail) - size) / 16 * 16;
    if (at < reinterpret_cast<uintptr_t>(start)) return nullptr;
    tail = reinterpret_cast<uint8_t*>(at);
    sizes.push_back(size);
    return tail;
  }
#ifndef STUB_2023
  uint8_t* AllocateTempBuffer(size_t size, size_t alignment) { return Temp(size, alignment); }
  void DeallocateTempBuffer(uint8_t*) { live--; }
#endif
  TfLiteTensor* AllocateTempInputTensor(const TfLiteNode* node, int index) {
    const int points = zero_points[static_cast<size_t>(node->inputs->data[index])];
    const size_t bytes = sizeof(TfLiteTensor) + sizeof(TfLiteAffineQuantization) + 8 +
                         4 * static_cast<size_t>(points);
    uint8_t* place = Temp(bytes, 8);
    if (!place) return nullptr;
    auto* tensor = reinterpret_cast<TfLiteTensor*>(place);
    auto* scales = reinterpret_cast<TfLiteAffineQuantization*>(tensor + 1);
    scales->zero_point = reinterpret_cast<TfLiteIntArray*>(scales + 1);
    scales->zero_point->size = points;
    scales->scale = reinterpret_cast<TfLiteFloatArray*>(scales->zero_point);  // as many
    memset(place + bytes - 4 * static_cast<size_t>(points), 0, 4 * static_cast<size_t>(points));
    tensor->quantization = {kTfLiteAffineQuantization, scales};
    return tensor;
  }
  void DeallocateTempTfLiteTensor(TfLiteTensor*) { live--; }
  TfLiteEvalTensor* GetEvalTensor(int index) { return &tensors[static_cast<size_t>(index)]; }

  uint8_t* start;
  uint8_t* temp;
  uint8_t* tail;
  int live = 0;
  std::vector<size_t> sizes;  // of persistent memory, in order
  std::vector<TfLiteEvalTensor> tensors;
  std::vector<int> zero_points;  // by tensor
};

inline MicroContext* GetMicroContext(const TfLiteContext* context) {
  return static_cast<MicroContext*>(context->impl_);
}

namespace micro {
inline const TfLiteEvalTensor* GetEvalInput(const TfLiteContext* c, const TfLiteNode* n, int i) {
  return GetMicroContext(c)->GetEvalTensor(n->inputs->data[i]);
}
inline TfLiteEvalTensor* GetEvalOutput(const TfLiteContext* c, const TfLiteNode* n, int i) {
  return GetMicroContext(c)->GetEvalTensor(n->outputs->data[i]);
}
}  // namespace micro

TfLiteRegistration Register_CONV_2D();
TfLiteRegistration Register_DEPTHWISE_CONV_2D();
TfLiteRegistration Register_FULLY_CONNECTED();
TfLiteStatus ParseConv2D(const Operator*, ErrorReporter*, BuiltinDataAllocator*, void**);
TfLiteStatus ParseDepthwiseConv2D(const Operator*, ErrorReporter*, BuiltinDataAllocator*, void**);

template <unsigned N>
class MicroMutableOpResolver {
 public:
  typedef TfLiteStatus (*Parser)(const Operator*, ErrorReporter*, BuiltinDataAllocator*, void**);
  virtual ~MicroMutableOpResolver() {}
  TfLiteStatus AddConv2D(const TfLiteRegistration& one) { return conv = one, kTfLiteOk; }
  TfLiteStatus AddDepthwiseConv2D(const TfLiteRegistration& one) { return depthwise = one, kTfLiteOk; }
  TfLiteStatus AddFullyConnected(const TfLiteRegistration& one) { return connected = one, kTfLiteOk; }
  virtual Parser GetOpDataParser(BuiltinOperator op) const {
    return op == BuiltinOperator_CONV_2D ? ParseConv2D : ParseDepthwiseConv2D;
  }
  TfLiteRegistration conv, depthwise, connected;
};

// A model: its metadata and buffers.
struct Text {
  std::string text;
  const char* c_str() const { return text.c_str(); }
};
struct Bytes {
  const uint8_t* bytes;
  size_t count;
  const uint8_t* data() const { return bytes; }
  size_t size() const { return count; }
};
struct Buffer {
  const Bytes* held;
  const Bytes* data() const { return held; }
};
struct Metadata {
  const Text* label;
  uint32_t index;
  const Text* name() const { return label; }
  uint32_t buffer() const { return index; }
};
template <class T>
struct List : std::vector<const T*> {
  const T* Get(size_t i) const { return this->at(i); }
};
struct Model {
  List<Metadata> entries;
  List<Buffer> held;
  const List<Metadata>* metadata() const { return &entries; }
  const List<Buffer>* buffers() const { return &held; }
};
const Model* GetModel(const void* data);

}  // namespace tflite
