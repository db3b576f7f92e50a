// lean: per-channel quantisation parameters of TFLM in flash instead of the arena: those of
// convolutions, and of fully connected layers whose filter has a scale for each channel.
//
//   stock   tail  | OpData | multipliers | shifts |  ...once more for every tile of every layer
//   lean    tail  | OpData (shared by equal tiles) |        multipliers, shifts -> model in flash
//
// Stock kernels, stock TFLM, the same bits. Use lean::OpResolver<N> where you used
// MicroMutableOpResolver<N>, or wrap single registrations:
//
//   lean::OpResolver<5> resolver;                        // or
//   resolver.AddConv2D(LEAN(tflite::Register_CONV_2D));
//   lean::UseModel(model_data, model_size);              // before AllocateTensors()
//
// The model's pool is written by `tflm-plan --firmware lean`; without one, tiles of one layer still share.
// While a stock Prepare runs, its requests for persistent memory are served from temporary memory;
// afterwards each block is looked up in the pool and OpData is pointed there. Blocks are found by
// content, so a wrong, damaged or missing pool costs memory, never bits. What is not recognised
// (floats, kernels that keep their pointers elsewhere) is prepared by TFLM alone, as ever.
//
// The pool must be mapped as long as the interpreter lives. AllocateTensors() of two interpreters
// must not run at the same time; Invoke() may. Works with current TFLM and the Arduino library of
// 2023, CMSIS-NN and reference kernels; on cores where other vendors' kernels are usual
// (LEAN_SHARE 0) nothing is shared between operators, since such kernels might write to it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/kernels/conv.h"
#include "tensorflow/lite/micro/kernels/depthwise_conv.h"
#include "tensorflow/lite/micro/kernels/fully_connected.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"

namespace lean {

// Takes the pool from the model's metadata "LEAN_PARAMS". False: there is none (still correct).
// `size`: bytes of the model.
bool UseModel(const void* model, size_t size);
// The same from memory: { word count, words }* 0, all uint32_t, 4-byte aligned, `size` bytes.
bool UsePool(const uint32_t* pool, size_t size);

// Off: everything as stock, allocation by allocation. On from the start. Takes effect for
// interpreters made afterwards.
void SetEnabled(bool enabled);

// What became of the blocks of the last AllocateTensors().
struct Stats {
  uint16_t in_flash, shared, in_ram;  // multiplier and shift arrays
  uint16_t opdata_shared, opdata_in_ram;
  uint16_t stock;                     // operators prepared by TFLM alone
};
const Stats& stats();

// --- how it hooks in ----------------------------------------------------------------------------

#define LEAN(REGISTER) (lean::Wrapped<decltype(REGISTER()), REGISTER>::Get())

typedef void* (*InitFunction)(TfLiteContext*, const char*, size_t);
typedef TfLiteStatus (*PrepareFunction)(TfLiteContext*, TfLiteNode*);
void* Init(TfLiteContext* context, const char* data, size_t size, InitFunction stock);
TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node, InitFunction init,
                     PrepareFunction prepare);

// One static wrapper per Register function: function pointers only, no closure, no RAM.
template <class Registration, Registration (*Register)()>
struct Wrapped {
  static void* WrappedInit(TfLiteContext* context, const char* data, size_t size) {
    return Init(context, data, size, Register().init);
  }
  static TfLiteStatus WrappedPrepare(TfLiteContext* context, TfLiteNode* node) {
    const Registration stock = Register();
    return Prepare(context, node, stock.init, stock.prepare);
  }
  static Registration Get() {
    Registration wrapped = Register();
    wrapped.init = WrappedInit;
    wrapped.prepare = WrappedPrepare;
    return wrapped;
  }
};

// Builtin parameters: parsed into the stack first; equal bytes in the pool are used instead.
class StackAllocator : public tflite::BuiltinDataAllocator {
 public:
  void* Allocate(size_t size, size_t) override {
    if (size_ || size > sizeof bytes_) return nullptr;
    size_ = size;
    return bytes_;
  }
  void Deallocate(void*) override {}
  void operator delete(void*) {}
  const void* bytes() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  alignas(8) uint8_t bytes_[64] = {};
  size_t size_ = 0;
};

// Where the pool holds these bytes, or nullptr.
const void* InPool(const void* bytes, size_t size);
bool UsesPool();

typedef TfLiteStatus (*Parser)(const tflite::Operator*, tflite::ErrorReporter*,
                               tflite::BuiltinDataAllocator*, void**);
template <Parser Stock>
TfLiteStatus Parse(const tflite::Operator* op, tflite::ErrorReporter* reporter,
                   tflite::BuiltinDataAllocator* allocator, void** parsed) {
  if (UsesPool()) {
    StackAllocator stack;
    if (Stock(op, reporter, &stack, parsed) == kTfLiteOk && *parsed == stack.bytes()) {
      if (const void* found = InPool(stack.bytes(), stack.size())) {
        *parsed = const_cast<void*>(found);
        return kTfLiteOk;
      }
    }
  }
  return Stock(op, reporter, allocator, parsed);
}

// Drop-in replacement for MicroMutableOpResolver<N>.
template <unsigned N>
class OpResolver : public tflite::MicroMutableOpResolver<N> {
  typedef tflite::MicroMutableOpResolver<N> Base;

 public:
  TfLiteStatus AddConv2D() { return Base::AddConv2D(LEAN(tflite::Register_CONV_2D)); }
  TfLiteStatus AddDepthwiseConv2D() {
    return Base::AddDepthwiseConv2D(LEAN(tflite::Register_DEPTHWISE_CONV_2D));
  }
  TfLiteStatus AddFullyConnected() {
    return Base::AddFullyConnected(LEAN(tflite::Register_FULLY_CONNECTED));
  }
  Parser GetOpDataParser(tflite::BuiltinOperator op) const override {
    const Parser stock = Base::GetOpDataParser(op);
    if (stock == tflite::ParseConv2D) return Parse<tflite::ParseConv2D>;
    if (stock == tflite::ParseDepthwiseConv2D) return Parse<tflite::ParseDepthwiseConv2D>;
    return stock;
  }
};

}  // namespace lean
