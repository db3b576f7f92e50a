// A chip of Espressif's as the runner sees it: with ESP-IDF, and with the Arduino core, which is
// built on it. It must not know which port its line is.
#pragma once
#if defined(ESP_PLATFORM)

#include "../runner/board.h"
#include "../runner/stack.h"
#include "../runner/store.h"
#include "esp_port.h"

namespace runner {

class EspBoard : public Board {
 public:
  // `stack`: of the task that runs models.
  EspBoard(EspPort* port, const Block& stack) : port_(port), stack_(stack) {}
  bool Begin();

  void Send(const uint8_t* data, size_t size) override { port_->Write(data, size); }
  const BoardFacts& facts() const override { return facts_; }
  uint32_t Ticks() override;
  uint32_t Millis() override;
  uint32_t StaticRam() override;
  Heap HeapNow() override;
  uint32_t StackSize() override { return static_cast<uint32_t>(stack_.size); }
  void PaintStack() override;
  uint32_t StackUsed() override { return static_cast<uint32_t>(gauge_.Used()); }

 private:
  EspPort* port_;
  Block stack_;
  BoardFacts facts_;
  StackGauge gauge_;
};

// RAM that the runner takes for itself, once: a model in PSRAM where there is some, and the arena
// in internal RAM, or else one block of internal RAM for both.
struct EspRam {
  Block upload, arena;
};
EspRam TakeRam();

}  // namespace runner

#endif
