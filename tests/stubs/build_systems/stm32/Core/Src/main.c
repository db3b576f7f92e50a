/* As CubeMX writes it: between its marks a user's lines stay when it writes the file again. */
#include "main.h"

#include <stdio.h>
#include <stdlib.h>

UART_HandleTypeDef huart2;

/* USER CODE BEGIN PFP */
/* USER CODE END PFP */

int main(void) {
  /* USER CODE BEGIN 2 */
  /* USER CODE END 2 */
  return 0; /* on a board: an endless loop */
}

HAL_StatusTypeDef HAL_UART_Transmit(UART_HandleTypeDef* line, const uint8_t* bytes, uint16_t count,
                                    uint32_t milliseconds) {
  (void)line, (void)milliseconds;
  fwrite(bytes, 1, count, stdout);
  return HAL_OK;
}

void Error_Handler(void) { exit(1); }
