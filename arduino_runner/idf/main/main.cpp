// Measures TFLite Micro models on this chip, asked by `tflm-plan measure` and `tflm-plan profile`.
#include "models.h"
#include "sdkconfig.h"
#include "src/esp/esp_runner.h"
#include "src/esp/idf_ports.h"
#include "src/runner/tflm_engine.h"

namespace {
#if CONFIG_RUNNER_LINE_USB_SERIAL_JTAG
runner::UsbSerialJtagPort port;
#else
runner::UartPort port(CONFIG_RUNNER_UART_NUMBER, CONFIG_RUNNER_UART_BAUD);
#endif
}  // namespace

extern "C" void app_main() {
  runner::StartEspRunner(&port, runner::TflmEngine(), runner::kModels, runner::kModelCount);
}
