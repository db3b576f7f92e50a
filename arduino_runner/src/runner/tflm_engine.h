// The engine on TFLite Micro: current TFLM, or the Arduino library of 2023, by feature tests.
#pragma once
#include "engine.h"

namespace runner {

// The one engine there is: TFLM keeps global state of its own, and so do the lean wrappers.
Engine* TflmEngine();

}  // namespace runner
