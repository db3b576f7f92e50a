#include "tflm_engine.h"

#include <setjmp.h>

#include <new>

#include "operators.h"
#include "tensorflow/lite/micro/arena_allocator/single_arena_buffer_allocator.h"
#include "tensorflow/lite/micro/memory_planner/greedy_memory_planner.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"
#include "tensorflow/lite/schema/schema_utils.h"

#ifndef RUNNER_LEAN
#define RUNNER_LEAN 1
#endif
#if RUNNER_LEAN
#include "../lean/lean.h"
#endif

#ifndef RUNNER_VERSION
#if __has_include("tensorflow/lite/micro/micro_interpreter_context.h")
#define RUNNER_VERSION "current"
#else
#define RUNNER_VERSION "arduino-2023"
#endif
#endif

#ifndef RUNNER_KERNELS
#if defined(CMSIS_NN) || __has_include("third_party/cmsis_nn/Include/arm_nnfunctions.h")
#define RUNNER_KERNELS "cmsis-nn"
#elif __has_include("esp_nn.h")
#define RUNNER_KERNELS "esp-nn"
#else
#define RUNNER_KERNELS "reference"
#endif
#endif

#ifndef RUNNER_TARGET
#if defined(ESP_PLATFORM) && !__has_include("esp_nn.h")
#define RUNNER_TARGET "xtensa-lx7/reference"  // and not the ESP-NN that the chip's board stands for
#else
#define RUNNER_TARGET ""
#endif
#endif

namespace runner {
namespace {

// --- memory -----------------------------------------------------------------------------------

jmp_buf g_out_of_memory;

// TFLM's own allocator, byte for byte, that never hands out memory twice: TFLM does not notice
// when persistent memory runs into temporary memory, and many kernels write through the null
// pointer that they get when there is no more. Both end the attempt here instead.
class GuardedArena : public tflite::SingleArenaBufferAllocator {
 public:
  using SingleArenaBufferAllocator::SingleArenaBufferAllocator;

  static GuardedArena* Create(uint8_t* arena, size_t size) {
    GuardedArena first(arena, size);
    void* place = first.AllocatePersistentBuffer(sizeof(GuardedArena), alignof(GuardedArena));
    return new (place) GuardedArena(first);
  }
  void operator delete(void*) {}

  uint8_t* AllocatePersistentBuffer(size_t size, size_t alignment) override {
    const size_t available = GetAvailableMemory(1), before = GetPersistentUsedBytes();
    uint8_t* made = size > available ? nullptr : Base::AllocatePersistentBuffer(size, alignment);
    if (made == nullptr || GetPersistentUsedBytes() - before > available) Fail();
    return made;
  }
  uint8_t* AllocateTemp(size_t size, size_t alignment) override {
    // Aligning upward may step over the tail, where TFLM's own unsigned difference wraps.
    if (size + Padding(alignment) > GetAvailableMemory(1)) Fail();
    return Base::AllocateTemp(size, alignment);
  }

 private:
  typedef tflite::SingleArenaBufferAllocator Base;
  size_t Padding(size_t alignment) const {
    const uintptr_t end =
        reinterpret_cast<uintptr_t>(GetOverlayMemoryAddress()) + GetNonPersistentUsedBytes();
    return (alignment - end % alignment) % alignment;
  }
  [[noreturn]] static void Fail() { longjmp(g_out_of_memory, 1); }
};

static_assert(sizeof(GuardedArena) == sizeof(tflite::SingleArenaBufferAllocator),
              "measured arenas must be those of a stock interpreter");

// --- operators --------------------------------------------------------------------------------

#define RUNNER_COUNT(method, name) +1
constexpr unsigned kMostOperators = 0 RUNNER_OPERATORS(RUNNER_COUNT);

#if RUNNER_LEAN
typedef lean::OpResolver<kMostOperators> Resolver;
#else
typedef tflite::MicroMutableOpResolver<kMostOperators> Resolver;
#endif

// Registers an operator if this TFLM has it.
#define RUNNER_REGISTER(method, name)                                        \
  template <class R>                                                         \
  auto Try##method(R* resolver, int) -> decltype(resolver->method(), true) { \
    return resolver->method() == kTfLiteOk;                                  \
  }                                                                          \
  template <class R>                                                         \
  bool Try##method(R*, long) {                                               \
    return false;                                                            \
  }
RUNNER_OPERATORS(RUNNER_REGISTER)

struct Operators {
  Resolver resolver;
  const char* names[kMostOperators];
  size_t count = 0;

  Operators() {
#define RUNNER_ADD(method, name) \
  if (Try##method(&resolver, 0)) names[count++] = name;
    RUNNER_OPERATORS(RUNNER_ADD)
  }
};

Operators& Registered() {
  static Operators operators;
  return operators;
}

// --- profiling --------------------------------------------------------------------------------

class Profiler : public tflite::MicroProfilerInterface {
 public:
  uint32_t BeginEvent(const char*) override { return log ? log->BeginEvent() : 0; }
  void EndEvent(uint32_t handle) override {
    if (log) log->EndEvent(handle);
  }
  LatencyLog* log = nullptr;
};

// --- the engine -------------------------------------------------------------------------------

class Tflm : public Engine {
 public:
  const char* kernels() const override { return RUNNER_KERNELS; }
  const char* version() const override { return RUNNER_VERSION; }
  const char* target() const override { return RUNNER_TARGET; }
  bool has_lean() const override { return RUNNER_LEAN; }
  size_t operators() const override { return Registered().count; }
  const char* operator_name(size_t index) const override { return Registered().names[index]; }

  bool Load(const uint8_t* model, size_t size, uint32_t* version) override;
  const char* MissingOperator() override;
  bool Fits(uint8_t* arena, size_t room, size_t size, bool lean) override;
  bool Build(uint8_t* arena, size_t size, bool lean, LatencyLog* log) override;
  bool AllocateTensors() override;
  ArenaUse Use() const override;
  size_t inputs() const override { return interpreter_ ? interpreter_->inputs_size() : 0; }
  size_t outputs() const override { return interpreter_ ? interpreter_->outputs_size() : 0; }
  bool Input(size_t index, TensorView* view) override {
    return index < inputs() && View(interpreter_->input(index), view);
  }
  bool Output(size_t index, TensorView* view) override {
    return index < outputs() && View(interpreter_->output(index), view);
  }
  bool Invoke() override { return interpreter_ && interpreter_->Invoke() == kTfLiteOk; }
  void Release() override;

 private:
  static bool View(const TfLiteTensor* tensor, TensorView* view);
  void Make(uint8_t* arena, size_t size);
  int ResourceVariables() const;

  const uint8_t* bytes_ = nullptr;  // of the model
  size_t size_ = 0;
  const tflite::Model* model_ = nullptr;
  GuardedArena* guarded_ = nullptr;
  tflite::MicroInterpreter* interpreter_ = nullptr;
  Profiler profiler_;
  alignas(tflite::MicroInterpreter) uint8_t place_[sizeof(tflite::MicroInterpreter)];
};

bool Within(const flatbuffers::Vector<int32_t>* indices, size_t count) {
  if (!indices) return true;
  for (int32_t index : *indices)
    if (index < -1 || index >= static_cast<int32_t>(count)) return false;
  return true;
}

// Whether every index in the model is one of something that is there: TFLM follows them blindly.
bool Sound(const tflite::Model* model) {
  if (!model->subgraphs() || model->subgraphs()->size() == 0) return false;
  if (!model->buffers() || !model->operator_codes()) return false;
  for (const tflite::SubGraph* graph : *model->subgraphs()) {
    if (!graph->tensors() || !graph->inputs() || !graph->outputs() || !graph->operators())
      return false;
    const size_t count = graph->tensors()->size();
    for (const tflite::Tensor* tensor : *graph->tensors())
      if (tensor->buffer() >= model->buffers()->size()) return false;
    if (!Within(graph->inputs(), count) || !Within(graph->outputs(), count)) return false;
    for (const tflite::Operator* op : *graph->operators()) {
      if (op->opcode_index() >= model->operator_codes()->size()) return false;
      if (!Within(op->inputs(), count) || !Within(op->outputs(), count)) return false;
    }
  }
  return true;
}

bool Tflm::Load(const uint8_t* model, size_t size, uint32_t* version) {
  Release();
  model_ = nullptr;
  *version = kUnknown;
  if (size < 16 || reinterpret_cast<uintptr_t>(model) % 16 != 0) return false;
  if (!tflite::ModelBufferHasIdentifier(model)) return false;
  flatbuffers::Verifier verifier(model, size);
  if (!tflite::VerifyModelBuffer(verifier)) return false;
  const tflite::Model* found = tflite::GetModel(model);
  if (!Sound(found)) return false;
  *version = found->version();
  if (found->version() != TFLITE_SCHEMA_VERSION) return false;
  model_ = found;
  bytes_ = model;
  size_ = size;
  return true;
}

const char* Tflm::MissingOperator() {
  if (!model_) return nullptr;
  for (const tflite::OperatorCode* code : *model_->operator_codes()) {
    const tflite::BuiltinOperator kind = tflite::GetBuiltinCode(code);
    if (kind != tflite::BuiltinOperator_CUSTOM) {
      if (Registered().resolver.FindOp(kind) == nullptr)
        return tflite::EnumNameBuiltinOperator(kind);
    } else if (!code->custom_code()) {
      return "CUSTOM";
    } else if (Registered().resolver.FindOp(code->custom_code()->c_str()) == nullptr) {
      return code->custom_code()->c_str();
    }
  }
  return nullptr;
}

int Tflm::ResourceVariables() const {
  int count = 0;
  for (const tflite::SubGraph* graph : *model_->subgraphs()) {
    for (const tflite::Operator* op : *graph->operators()) {
      const tflite::OperatorCode* code = model_->operator_codes()->Get(op->opcode_index());
      if (tflite::GetBuiltinCode(code) == tflite::BuiltinOperator_VAR_HANDLE) count++;
    }
  }
  return count;
}

// What MicroInterpreter's constructor for a plain arena does, in the same order.
void Tflm::Make(uint8_t* arena, size_t size) {
  guarded_ = GuardedArena::Create(arena, size);
  void* place = guarded_->AllocatePersistentBuffer(sizeof(tflite::GreedyMemoryPlanner),
                                                   alignof(tflite::GreedyMemoryPlanner));
  auto* planner = new (place) tflite::GreedyMemoryPlanner();
  auto* allocator = tflite::MicroAllocator::Create(guarded_, planner);
  const int count = ResourceVariables();
  auto* variables =
      count ? tflite::MicroResourceVariables::Create(allocator, count) : nullptr;
  interpreter_ = new (place_) tflite::MicroInterpreter(model_, Registered().resolver, allocator,
                                                       variables, &profiler_);
}

bool Tflm::Fits(uint8_t* arena, size_t, size_t size, bool lean) {
  const bool fits = Build(arena, size, lean, nullptr) && AllocateTensors();
  Release();
  return fits;
}

bool Tflm::Build(uint8_t* arena, size_t size, bool lean, LatencyLog* log) {
  Release();
  if (!model_) return false;
  profiler_.log = log;
#if RUNNER_LEAN
  lean::SetEnabled(lean);
  lean::UseModel(bytes_, size_);
#else
  (void)lean;
#endif
  if (setjmp(g_out_of_memory)) {
    interpreter_ = nullptr;  // abandoned half-made: all of it lies in the arena
    return false;
  }
  Make(arena, size);
  return interpreter_->initialization_status() == kTfLiteOk;
}

bool Tflm::AllocateTensors() {
  if (setjmp(g_out_of_memory)) {
    interpreter_ = nullptr;
    return false;
  }
  return interpreter_->AllocateTensors() == kTfLiteOk;
}

ArenaUse Tflm::Use() const {
  ArenaUse use;
  use.used = static_cast<uint32_t>(interpreter_->arena_used_bytes());
  use.head = static_cast<uint32_t>(guarded_->GetNonPersistentUsedBytes());
  use.tail = static_cast<uint32_t>(guarded_->GetPersistentUsedBytes());
  return use;
}

bool Tflm::View(const TfLiteTensor* tensor, TensorView* view) {
  if (!tensor || tensor->dims->size > kMostDimensions) return false;
  view->type = static_cast<uint8_t>(tensor->type);
  view->rank = static_cast<uint8_t>(tensor->dims->size);
  for (int i = 0; i < tensor->dims->size; i++) view->dims[i] = tensor->dims->data[i];
  view->data = static_cast<uint8_t*>(tensor->data.data);
  view->size = static_cast<uint32_t>(tensor->bytes);
  return view->data != nullptr || view->size == 0;
}

void Tflm::Release() {
  if (interpreter_) interpreter_->~MicroInterpreter();
  interpreter_ = nullptr;
  guarded_ = nullptr;
}

}  // namespace

Engine* TflmEngine() {
  static Tflm engine;
  return &engine;
}

}  // namespace runner
