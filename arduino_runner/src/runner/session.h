// The board's side of schema/protocol.md: one request at a time, one reply, no allocation.
//
// State: session -> model (begun, complete) -> arena -> allocated -> inputs set -> outputs there.
// A command that goes a step back discards what is behind it. The last reply stays in its buffer,
// so that a repeated request is answered without being done again.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "board.h"
#include "engine.h"
#include "framing.h"
#include "latency_log.h"
#include "smallest.h"
#include "store.h"

namespace runner {

struct Buffers {
  uint8_t* receive;  // of `size` bytes each
  uint8_t* reply;
  size_t size;       // largest payload + kFrameExtra
};

class Session : private Trials {
 public:
  Session(Board* board, Engine* engine, Store* store, LatencyLog* log, const Buffers& buffers);

  // Takes one byte off the line, and answers when it ends a request.
  void Take(uint8_t byte);

 private:
  struct Error {
    Status status;
    uint32_t detail;
    const char* text;
  };
  // Every command reads its request, and writes a reply or returns an error.
  typedef Error (Session::*Handler)(Reader* request, Writer* reply);
  static Handler HandlerOf(uint8_t type);

  void Answer(const Frame& request);
  void Run(const Frame& request);
  void Finish(const Frame& request, Status status, size_t length);
  void Working(uint32_t done, uint32_t total);
  bool Works(uint32_t size) override;

  Error Hello(Reader* request, Writer* reply);
  Error Capabilities(Reader* request, Writer* reply);
  Error ModelBegin(Reader* request, Writer* reply);
  Error ModelChunk(Reader* request, Writer* reply);
  Error ModelEnd(Reader* request, Writer* reply);
  Error ModelSelect(Reader* request, Writer* reply);
  Error SetArena(Reader* request, Writer* reply);
  Error Allocate(Reader* request, Writer* reply);
  Error Tensor(Reader* request, Writer* reply);
  Error Input(Reader* request, Writer* reply);
  Error Invoke(Reader* request, Writer* reply);
  Error Log(Reader* request, Writer* reply);
  Error Output(Reader* request, Writer* reply);
  Error Memory(Reader* request, Writer* reply);

  bool Item(uint32_t index, Writer* writer) const;
  uint32_t Flags() const;
  Error LoadModel();
  void DropModel();
  void DropInterpreter();
  bool BuildAndAllocate();
  Error FillInputs(uint32_t seed);
  bool OneRun(uint16_t flags);
  size_t InputsOfModel();

  Board* board_;
  Engine* engine_;
  Store* store_;
  LatencyLog* log_;
  FrameReceiver receiver_;
  FrameBuilder reply_;
  size_t limit_ = kPayloadBeforeHello;  // of replies
  const size_t most_;                   // of requests

  bool open_ = false;                   // HELLO was answered
  bool answered_ = false;               // the reply buffer answers the request below
  uint8_t last_type_ = 0;
  uint16_t last_sequence_ = 0;
  uint32_t last_crc_ = 0;

  bool loaded_ = false;
  uint32_t arena_ = 0;                  // bytes; 0: not set
  bool lean_ = false, allocated_ = false, ran_ = false;
  size_t input_ = 0;                    // next input to be set, and the offset in it
  uint32_t input_offset_ = 0;
  uint32_t events_ = 0;                 // of the last run
  uint32_t stack_allocate_ = kUnknown, stack_invoke_ = kUnknown;
  uint8_t working_type_ = 0;            // request in progress, for WORKING
  uint16_t working_sequence_ = 0;
  uint32_t working_at_ = 0;
  uint16_t trials_ = 0;
};

}  // namespace runner
