// The numbers of schema/protocol.md.
#pragma once
#include <stdint.h>

namespace runner {

constexpr uint32_t kMagic = 0x4D4C4654;  // "TFLM"
constexpr uint8_t kMajor = 1, kMinor = 0;
constexpr uint32_t kUnknown = 0xFFFFFFFF;
constexpr uint8_t kReply = 0x80;
constexpr uint16_t kPayloadBeforeHello = 128, kPayloadMost = 4096;

enum Command : uint8_t {
  kHello = 0x01, kCapabilities = 0x02,
  kModelBegin = 0x10, kModelChunk = 0x11, kModelEnd = 0x12, kModelSelect = 0x13,
  kArena = 0x20, kAllocate = 0x21, kTensor = 0x22, kInput = 0x23, kInvoke = 0x24, kLog = 0x25,
  kOutput = 0x26, kMemory = 0x27,
};

enum Status : uint8_t {
  kDone = 0x00, kWorking = 0x01,
  kUnknownCommand = 0x10, kBadLength = 0x11, kBadValue = 0x12, kNoSession = 0x13,
  kBadState = 0x14,
  kModelTooBig = 0x20, kModelDamaged = 0x21, kModelUnsupported = 0x22, kOperatorMissing = 0x23,
  kArenaTooBig = 0x24, kAllocateFailed = 0x25, kInvokeFailed = 0x26, kTypeUnsupported = 0x27,
  kInternal = 0x2F,
};

enum Tag : uint8_t {
  kTagBoard = 0x01, kTagCore = 0x02, kTagKernels = 0x03, kTagTflm = 0x04, kTagFirmware = 0x05,
  kTagTarget = 0x06, kTagClock = 0x07,
  kTagClockHz = 0x10, kTagTickHz = 0x11, kTagModelRoom = 0x12, kTagArenaRoom = 0x13,
  kTagFreeRam = 0x14, kTagStaticRam = 0x15, kTagLogRoom = 0x16, kTagFlags = 0x17,
  kTagModel = 0x20, kTagOperator = 0x21,
};

enum Flag : uint32_t {
  kFlagLean = 1, kFlagOperators = 2, kFlagStack = 4, kFlagVirtual = 8, kFlagAllOperators = 16,
  kFlagOneStore = 32,
};

constexpr uint16_t kAllocateSmallest = 1, kAllocateLean = 2;
constexpr uint16_t kInvokeFill = 1, kInvokeLog = 2, kInvokeOperators = 4;
constexpr uint16_t kMostDimensions = 8, kMostErrorText = 100;

}  // namespace runner
