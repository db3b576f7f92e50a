// The only source of TFLM's stand-in: it compiles as TFLM's own file does, and says one word.
#include "tensorflow/lite/micro/cortex_m_generic/debug_log_callback.h"

#if !defined(PROJECT_GENERATION) || !defined(TF_LITE_STATIC_MEMORY) || !defined(CMSIS_NN)
#error "a macro of the library is missing"
#endif

void RegisterDebugLogCallback(DebugLogCallback callback) { callback("TFLM\n"); }
