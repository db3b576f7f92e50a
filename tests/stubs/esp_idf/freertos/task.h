#pragma once
#include "FreeRTOS.h"
struct StaticTask_t {
  int unused;
};
typedef void* TaskHandle_t;
typedef void (*TaskFunction_t)(void*);
#define tskIDLE_PRIORITY 0
TaskHandle_t xTaskCreateStaticPinnedToCore(TaskFunction_t function, const char* name,
                                           uint32_t stack_bytes, void* given,
                                           UBaseType_t priority, StackType_t* stack,
                                           StaticTask_t* task, BaseType_t core);
