// Just enough of an op resolver to compile what `tflm-plan export` writes. Ours, not TFLM's: it
// counts registrations, and refuses more than it has room for.
#pragma once

enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };
struct TFLMRegistration {};

#define TF_LITE_ENSURE_STATUS(a)         \
  do {                                   \
    const TfLiteStatus s = (a);          \
    if (s != kTfLiteOk) return s;        \
  } while (0)

namespace tflite {

template <unsigned int capacity>
class MicroMutableOpResolver {
 public:
#define STUB_METHOD(name) \
  TfLiteStatus name() { return Add(); }
#include "stub_methods.inc"
#undef STUB_METHOD

  TfLiteStatus AddCustom(const char* name, const TFLMRegistration* registration) {
    return name != nullptr && registration != nullptr ? Add() : kTfLiteError;
  }
  unsigned int count() const { return count_; }

 private:
  TfLiteStatus Add() {
    if (count_ == capacity) return kTfLiteError;
    ++count_;
    return kTfLiteOk;
  }
  unsigned int count_ = 0;
};

}  // namespace tflite
