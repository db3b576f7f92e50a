// The runner on a chip of Espressif's: a task of its own that answers on a port, for good.
#pragma once
#if defined(ESP_PLATFORM)

#include "../runner/engine.h"
#include "../runner/store.h"
#include "esp_port.h"

namespace runner {

// Models compiled in and what runs them; all of it must stay where it is. False where there is no
// memory, or the port does not start.
bool StartEspRunner(EspPort* port, Engine* engine, const BuiltinModel* models, size_t count);

}  // namespace runner

#endif
