// As ESP-IDF writes it for one chip; which line and which memory is the test's choice.
#pragma once
#define CONFIG_IDF_TARGET "esp32s3"
#define CONFIG_IDF_TARGET_ARCH_XTENSA 1
#define CONFIG_RUNNER_UART_NUMBER 0
#define CONFIG_RUNNER_UART_BAUD 115200
