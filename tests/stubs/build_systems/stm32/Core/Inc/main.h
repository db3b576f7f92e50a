/* Of the main.h that CubeMX writes, and of the HAL which that includes. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int unused;
} UART_HandleTypeDef;
typedef enum { HAL_OK = 0 } HAL_StatusTypeDef;
#define HAL_MAX_DELAY 0xFFFFFFFFU

HAL_StatusTypeDef HAL_UART_Transmit(UART_HandleTypeDef* line, const uint8_t* bytes, uint16_t count,
                                    uint32_t milliseconds);
void Error_Handler(void);

#ifdef __cplusplus
}
#endif
