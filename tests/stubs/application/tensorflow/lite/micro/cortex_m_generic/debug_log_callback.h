#pragma once

typedef void (*DebugLogCallback)(const char* s);
extern "C" void RegisterDebugLogCallback(DebugLogCallback callback);
