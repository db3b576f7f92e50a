// Arduino boards on Mbed OS (Nano 33 BLE, Nano RP2040 Connect, Portenta H7, Nicla Vision, Giga R1)
// as the runner sees them; on other cores what only Mbed tells is reported as unknown.
#pragma once
#include <Arduino.h>

#include "src/runner/board.h"
#include "src/runner/stack.h"

namespace runner {

class ArduinoBoard : public Board {
 public:
  void Begin();
  bool Receive(uint8_t* byte);

  void Send(const uint8_t* data, size_t size) override;
  const BoardFacts& facts() const override { return facts_; }
  uint32_t Ticks() override;
  uint32_t Millis() override { return millis(); }
  uint32_t StaticRam() override;
  Heap HeapNow() override;
  uint32_t StackSize() override;
  void PaintStack() override;
  uint32_t StackUsed() override;

 private:
  BoardFacts facts_;
  StackGauge gauge_;
};

}  // namespace runner
