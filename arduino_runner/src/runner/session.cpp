#include "session.h"

#include <initializer_list>

#include "crc32.h"
#include "fill.h"

namespace runner {
namespace {

constexpr uint32_t kWorkingInterval = 100;  // ms between WORKING replies, at least

uint32_t Narrow(size_t value) { return static_cast<uint32_t>(value); }

}  // namespace

Session::Session(Board* board, Engine* engine, Store* store, LatencyLog* log,
                 const Buffers& buffers)
    : board_(board),
      engine_(engine),
      store_(store),
      log_(log),
      receiver_(buffers.receive, buffers.size),
      reply_(buffers.reply, buffers.size),
      most_(buffers.size - kFrameExtra < kPayloadMost ? buffers.size - kFrameExtra
                                                      : kPayloadMost) {}

// --- requests and replies ---------------------------------------------------------------------

void Session::Take(uint8_t byte) {
  Frame request;
  if (receiver_.Take(byte, &request)) Answer(request);
}

void Session::Answer(const Frame& request) {
  if (request.type == 0 || request.type >= kReply) return;  // no request
  const bool repeat = answered_ && request.type == last_type_ &&
                      request.sequence == last_sequence_ && request.crc == last_crc_;
  if (!repeat || request.type == kHello) Run(request);
  reply_.SendTo(board_);
}

void Session::Run(const Frame& request) {
  Reader reader(request.payload, request.length);
  Writer writer = reply_.Payload(request.type == kHello ? kPayloadBeforeHello : limit_);
  working_type_ = request.type;
  working_sequence_ = request.sequence;
  const Handler handler = HandlerOf(request.type);
  Error error{kDone, 0, ""};
  if (handler == nullptr)
    error = {kUnknownCommand, 0, ""};
  else if (!open_ && request.type != kHello)
    error = {kNoSession, 0, ""};
  else
    error = (this->*handler)(&reader, &writer);
  if (error.status == kDone && !writer.ok()) error = {kInternal, 0, "reply too long"};
  if (error.status == kDone) return Finish(request, kDone, writer.used());
  Writer failure = reply_.Payload(limit_);
  failure.U32(error.detail);
  const size_t text = strlen(error.text);
  failure.Bytes(error.text, text < kMostErrorText ? text : kMostErrorText);
  Finish(request, error.status, failure.used());
}

void Session::Finish(const Frame& request, Status status, size_t length) {
  reply_.Close(static_cast<uint8_t>(request.type | kReply), status, request.sequence, length);
  answered_ = request.type != kHello && open_;
  last_type_ = request.type;
  last_sequence_ = request.sequence;
  last_crc_ = request.crc;
}

void Session::Working(uint32_t done, uint32_t total) {
  const uint32_t now = board_->Millis();
  if (done != 0 && now - working_at_ < kWorkingInterval) return;
  working_at_ = now;
  uint8_t bytes[kFrameExtra + 8];
  FrameBuilder frame(bytes, sizeof bytes);
  Writer payload = frame.Payload(8);
  payload.U32(done);
  payload.U32(total);
  frame.Close(static_cast<uint8_t>(working_type_ | kReply), kWorking, working_sequence_,
              payload.used());
  frame.SendTo(board_);
}

Session::Handler Session::HandlerOf(uint8_t type) {
  switch (type) {
    case kHello: return &Session::Hello;
    case kCapabilities: return &Session::Capabilities;
    case kModelBegin: return &Session::ModelBegin;
    case kModelChunk: return &Session::ModelChunk;
    case kModelEnd: return &Session::ModelEnd;
    case kModelSelect: return &Session::ModelSelect;
    case kArena: return &Session::SetArena;
    case kAllocate: return &Session::Allocate;
    case kTensor: return &Session::Tensor;
    case kInput: return &Session::Input;
    case kInvoke: return &Session::Invoke;
    case kLog: return &Session::Log;
    case kOutput: return &Session::Output;
    case kMemory: return &Session::Memory;
    default: return nullptr;
  }
}

Session::Error Session::Hello(Reader* request, Writer* reply) {
  const uint32_t magic = request->U32();
  request->U16();  // whatever version is asked for
  const uint16_t theirs = request->U16();
  const uint32_t nonce = request->U32();
  if (!request->ok()) return {kBadLength, 12, ""};
  if (magic != kMagic) return {kBadValue, kMagic, "magic"};
  open_ = true;
  limit_ = theirs < most_ ? theirs : most_;
  if (limit_ < kPayloadBeforeHello) limit_ = kPayloadBeforeHello;
  reply->U32(kMagic);
  reply->U8(kMajor);
  reply->U8(kMinor);
  reply->U16(static_cast<uint16_t>(most_));
  reply->U32(nonce);
  reply->U8(board_->facts().reset);
  reply->Bytes("\0\0\0", 3);
  return {kDone, 0, ""};
}

// --- capabilities -----------------------------------------------------------------------------

uint32_t Session::Flags() const {
  uint32_t flags = kFlagOperators;
  if (store_->shared()) flags |= kFlagOneStore;
  if (engine_->has_lean()) flags |= kFlagLean;
  if (board_->StackSize() != kUnknown) flags |= kFlagStack;
  return flags;
}

// Writes item number `index`, and returns whether there is one.
bool Session::Item(uint32_t index, Writer* writer) const {
  const BoardFacts& facts = board_->facts();
  const struct { Tag tag; const char* text; } texts[] = {
      {kTagBoard, facts.board}, {kTagCore, facts.core}, {kTagKernels, engine_->kernels()},
      {kTagTflm, engine_->version()}, {kTagFirmware, facts.firmware},
      {kTagTarget, engine_->target()}, {kTagClock, facts.clock}};
  const struct { Tag tag; uint32_t value; } numbers[] = {
      {kTagClockHz, facts.clock_hz}, {kTagTickHz, facts.tick_hz},
      {kTagModelRoom, Narrow(store_->upload_room())}, {kTagArenaRoom, Narrow(store_->most_arena())},
      {kTagFreeRam, board_->HeapNow().free}, {kTagStaticRam, board_->StaticRam()},
      {kTagLogRoom, Narrow(log_->room())}, {kTagFlags, Flags()}};
  constexpr uint32_t kTexts = sizeof texts / sizeof *texts;
  constexpr uint32_t kNumbers = sizeof numbers / sizeof *numbers;
  const char* text = nullptr;
  Tag tag;
  uint8_t fixed[8];
  Writer value(fixed, sizeof fixed);
  if (index < kTexts) {
    tag = texts[index].tag;
    text = texts[index].text;
  } else if ((index -= kTexts) < kNumbers) {
    tag = numbers[index].tag;
    value.U32(numbers[index].value);
  } else if ((index -= kNumbers) < store_->models()) {
    const BuiltinModel& model = store_->model_at(index);
    tag = kTagModel;
    value.U32(model.size);
    value.U32(Crc32(model.data, model.size));
    text = model.name;
  } else if ((index -= Narrow(store_->models())) < engine_->operators()) {
    tag = kTagOperator;
    text = engine_->operator_name(index);
  } else {
    return false;
  }
  size_t length = text ? strlen(text) : 0;
  if (length > kMostErrorText) length = kMostErrorText;  // so that an item always fits
  writer->U8(tag);
  writer->U8(static_cast<uint8_t>(value.used() + length));
  writer->Bytes(fixed, value.used());
  if (text) writer->Bytes(text, length);
  return true;
}

Session::Error Session::Capabilities(Reader* request, Writer* reply) {
  const uint16_t first = request->U16();
  if (!request->ok()) return {kBadLength, 2, ""};
  uint32_t total = 0;
  uint8_t bytes[2 + 8 + kMostErrorText];
  for (;; total++) {
    Writer scratch(bytes, sizeof bytes);
    if (!Item(total, &scratch)) break;
  }
  if (first > total) return {kBadValue, total, ""};
  reply->U16(static_cast<uint16_t>(total));
  reply->U16(first);
  for (uint32_t index = first; index < total; index++) {
    Writer item(bytes, sizeof bytes);
    Item(index, &item);
    if (item.used() > reply->left()) break;
    reply->Bytes(bytes, item.used());
  }
  return {kDone, 0, ""};
}

// --- models -----------------------------------------------------------------------------------

void Session::DropInterpreter() {
  engine_->Release();
  allocated_ = ran_ = false;
  input_ = 0;
  input_offset_ = 0;
  log_->Clear();
}

void Session::DropModel() {
  DropInterpreter();
  loaded_ = false;
  arena_ = 0;
}

Session::Error Session::ModelBegin(Reader* request, Writer* reply) {
  const uint32_t size = request->U32();
  const uint32_t crc = request->U32();
  if (!request->ok()) return {kBadLength, 8, ""};
  if (size > store_->upload_room()) return {kModelTooBig, Narrow(store_->upload_room()), ""};
  DropModel();
  store_->Begin(size, crc);
  reply->U16(static_cast<uint16_t>(most_ - 4));
  reply->U16(0);
  return {kDone, 0, ""};
}

Session::Error Session::ModelChunk(Reader* request, Writer* reply) {
  const uint32_t offset = request->U32();
  if (!request->ok()) return {kBadLength, 4, ""};
  if (!store_->begun()) return {kBadState, kModelBegin, ""};
  if (offset != store_->received()) return {kBadValue, store_->received(), ""};
  if (!store_->Append(request->rest(), request->left()))
    return {kBadLength, store_->expected() - store_->received(), "beyond the model's end"};
  reply->U32(store_->received());
  return {kDone, 0, ""};
}

Session::Error Session::ModelEnd(Reader*, Writer* reply) {
  if (!store_->begun()) return {kBadState, kModelBegin, ""};
  if (store_->received() != store_->expected()) return {kBadLength, store_->received(), ""};
  const uint32_t announced = store_->announced_crc();
  store_->End();
  const uint32_t crc = Crc32(store_->model(), store_->model_size());
  if (crc != announced) {
    store_->Discard();
    return {kModelDamaged, crc, ""};
  }
  const Error error = LoadModel();
  if (error.status != kDone) return error;
  reply->U32(store_->model_size());
  reply->U32(crc);
  return error;
}

Session::Error Session::ModelSelect(Reader* request, Writer* reply) {
  const uint16_t index = request->U16();
  if (!request->ok()) return {kBadLength, 4, ""};
  if (index >= store_->models()) return {kBadValue, Narrow(store_->models()), ""};
  DropModel();
  store_->Select(index);
  const Error error = LoadModel();
  if (error.status != kDone) return error;
  reply->U32(store_->model_size());
  reply->U32(Crc32(store_->model(), store_->model_size()));
  return error;
}

Session::Error Session::LoadModel() {
  uint32_t version = kUnknown;
  loaded_ = engine_->Load(store_->model(), store_->model_size(), &version);
  if (loaded_) return {kDone, 0, ""};
  store_->Discard();
  return {kModelUnsupported, version, version == kUnknown ? "no model" : "schema version"};
}

// --- arena and interpreter --------------------------------------------------------------------

Session::Error Session::SetArena(Reader* request, Writer* reply) {
  const uint32_t size = request->U32();
  if (!request->ok()) return {kBadLength, 4, ""};
  if (!loaded_) return {kBadState, kModelEnd, ""};
  const uint32_t room = Narrow(store_->arena_room());
  if (size > room || room == 0) return {kArenaTooBig, room, ""};
  DropInterpreter();
  arena_ = size ? size : room;
  reply->U32(arena_);
  return {kDone, 0, ""};
}

bool Session::Works(uint32_t size) {
  Working(trials_ + 1u, kUnknown);
  return engine_->Fits(store_->arena(), store_->arena_room(), size, lean_);
}

bool Session::BuildAndAllocate() {
  board_->PaintStack();
  const bool done = engine_->Build(store_->arena(), arena_, lean_, log_) &&
                    engine_->AllocateTensors();
  stack_allocate_ = board_->StackUsed();
  return done;
}

Session::Error Session::Allocate(Reader* request, Writer* reply) {
  const uint16_t flags = request->U16();
  const uint16_t step = request->U16();
  const uint32_t lowest = request->U32();
  if (!request->ok()) return {kBadLength, 8, ""};
  if ((flags & kAllocateLean) && !engine_->has_lean()) return {kBadValue, 0, "lean"};
  if (arena_ == 0) return {kBadState, kArena, ""};
  DropInterpreter();
  if (const char* missing = engine_->MissingOperator()) return {kOperatorMissing, 0, missing};
  Working(0, kUnknown);
  lean_ = flags & kAllocateLean;
  uint32_t smallest = kUnknown;
  trials_ = 0;
  const bool fits = Works(arena_);
  if (fits && (flags & kAllocateSmallest)) {
    trials_ = 0;
    smallest = Smallest(this, lowest, arena_, step, &trials_);
  }
  const uint32_t start = board_->Ticks();
  allocated_ = fits && BuildAndAllocate();
  const uint32_t ticks = board_->Ticks() - start;
  if (!allocated_) {
    DropInterpreter();
    return {kAllocateFailed, arena_, "AllocateTensors"};
  }
  const ArenaUse use = engine_->Use();
  for (uint32_t value : {arena_, use.used, use.head, use.tail, smallest, ticks, stack_allocate_})
    reply->U32(value);
  reply->U16(static_cast<uint16_t>(engine_->inputs()));
  reply->U16(static_cast<uint16_t>(engine_->outputs()));
  reply->U16(lean_ ? 1 : 0);
  reply->U16(trials_);
  return {kDone, 0, ""};
}

Session::Error Session::Tensor(Reader* request, Writer* reply) {
  const uint8_t which = request->U8();
  request->U8();
  const uint16_t index = request->U16();
  if (!request->ok()) return {kBadLength, 4, ""};
  if (!allocated_) return {kBadState, kAllocate, ""};
  if (which > 1) return {kBadValue, 2, "which"};
  TensorView view;
  const size_t count = which ? engine_->outputs() : engine_->inputs();
  if (index >= count) return {kBadValue, Narrow(count), "index"};
  if (!(which ? engine_->Output(index, &view) : engine_->Input(index, &view)))
    return {kInternal, 0, "tensor"};
  reply->U8(view.type);
  reply->U8(view.rank);
  reply->U16(0);
  reply->U32(view.size);
  for (size_t i = 0; i < view.rank; i++) reply->U32(static_cast<uint32_t>(view.dims[i]));
  return {kDone, 0, ""};
}

// --- running ----------------------------------------------------------------------------------

Session::Error Session::Input(Reader* request, Writer* reply) {
  const uint16_t index = request->U16();
  request->U16();
  const uint32_t offset = request->U32();
  if (!request->ok()) return {kBadLength, 8, ""};
  if (!allocated_) return {kBadState, kAllocate, ""};
  if (index >= engine_->inputs()) return {kBadValue, Narrow(engine_->inputs()), "index"};
  const bool anew = index == 0 && offset == 0;
  if (!anew && index != input_) return {kBadValue, Narrow(input_), "index"};
  if (!anew && offset != input_offset_) return {kBadValue, input_offset_, "offset"};
  TensorView view;
  if (!engine_->Input(index, &view)) return {kInternal, 0, "tensor"};
  if (request->left() > view.size - offset)
    return {kBadLength, view.size - offset, "beyond the tensor's end"};
  if (request->left()) memcpy(view.data + offset, request->rest(), request->left());
  ran_ = false;  // a plan may put inputs where outputs are
  input_ = index;
  input_offset_ = offset + Narrow(request->left());
  if (input_offset_ == view.size) {
    input_ = index + 1u;
    input_offset_ = 0;
  }
  reply->U32(view.size);
  return {kDone, 0, ""};
}

Session::Error Session::FillInputs(uint32_t seed) {
  for (size_t i = 0; i < engine_->inputs(); i++) {
    TensorView view;
    if (!engine_->Input(i, &view)) return {kInternal, 0, "tensor"};
    if (!Fill(view.type, seed, Narrow(i), view.data, view.size))
      return {kTypeUnsupported, view.type, ""};
  }
  return {kDone, 0, ""};
}

bool Session::OneRun(uint16_t flags) {
  board_->PaintStack();
  log_->BeginRun(flags & kInvokeLog, flags & kInvokeOperators);
  const bool done = engine_->Invoke();
  log_->EndRun();
  const uint32_t stack = board_->StackUsed();
  if (stack_invoke_ == kUnknown || (stack != kUnknown && stack > stack_invoke_))
    stack_invoke_ = stack;
  events_ = log_->events();
  return done;
}

Session::Error Session::Invoke(Reader* request, Writer* reply) {
  const uint16_t flags = request->U16();
  const uint16_t count = request->U16();
  const uint32_t seed = request->U32();
  if (!request->ok()) return {kBadLength, 8, ""};
  if (!allocated_) return {kBadState, kAllocate, ""};
  const bool fill = flags & kInvokeFill;
  if (count == 0 || (!fill && count != 1)) return {kBadValue, 1, "count"};
  if (!fill && input_ < engine_->inputs()) return {kBadState, kInput, ""};
  const size_t outputs = engine_->outputs();
  if (reply->left() < 16 + 4 * outputs) return {kInternal, 0, "too many outputs"};
  Working(0, count);
  input_ = 0;  // inputs are used up, whatever comes
  input_offset_ = 0;
  ran_ = false;
  log_->Clear();
  stack_invoke_ = kUnknown;
  Writer head = *reply;
  reply->Skip(16);  // the head is written last, the CRCs after the first run
  uint16_t runs = 0;
  while (runs < count) {
    const size_t events = flags & kInvokeOperators ? events_ : 0;
    if (runs && (flags & kInvokeLog) && !log_->Fits(events)) break;
    if (runs) Working(runs, count);
    if (fill) {
      const Error error = FillInputs(seed);
      if (error.status != kDone) return error;
    }
    if (!OneRun(flags)) return {kInvokeFailed, runs, ""};
    for (size_t i = 0; runs == 0 && i < outputs; i++) {
      TensorView view;
      if (!engine_->Output(i, &view)) return {kInternal, 0, "tensor"};
      reply->U32(Crc32(view.data, view.size));
    }
    runs++;
  }
  ran_ = true;
  head.U16(runs);
  head.U16(static_cast<uint16_t>(outputs));
  head.U32(events_);
  head.U32(Narrow(log_->used()));
  head.U32(stack_invoke_);
  return {kDone, 0, ""};
}

Session::Error Session::Log(Reader* request, Writer* reply) {
  const uint32_t first = request->U32();
  if (!request->ok()) return {kBadLength, 4, ""};
  const uint32_t entries = Narrow(log_->used());
  if (first > entries) return {kBadValue, entries, ""};
  reply->U32(entries);
  reply->U32(first);
  for (uint32_t i = first; i < entries && reply->left() >= 4; i++) reply->U32(log_->entry(i));
  return {kDone, 0, ""};
}

Session::Error Session::Output(Reader* request, Writer* reply) {
  const uint16_t index = request->U16();
  request->U16();
  const uint32_t offset = request->U32();
  if (!request->ok()) return {kBadLength, 8, ""};
  if (!ran_) return {kBadState, kInvoke, ""};
  if (index >= engine_->outputs()) return {kBadValue, Narrow(engine_->outputs()), "index"};
  TensorView view;
  if (!engine_->Output(index, &view)) return {kInternal, 0, "tensor"};
  if (offset > view.size) return {kBadValue, view.size, "offset"};
  reply->U32(view.size);
  reply->U32(Crc32(view.data, view.size));
  reply->U32(offset);
  const size_t rest = view.size - offset;
  reply->Bytes(view.data + offset, rest < reply->left() ? rest : reply->left());
  return {kDone, 0, ""};
}

Session::Error Session::Memory(Reader*, Writer* reply) {
  const Heap heap = board_->HeapNow();
  for (uint32_t value : {board_->StaticRam(), heap.used, heap.peak, heap.free,
                         board_->StackSize(), stack_allocate_, stack_invoke_,
                         receiver_.bad_frames()})
    reply->U32(value);
  return {kDone, 0, ""};
}

}  // namespace runner
