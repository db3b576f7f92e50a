#include "lean.h"

#include <string.h>

#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/micro_context.h"
#include "tensorflow/lite/micro/micro_log.h"
#include "tensorflow/lite/schema/schema_generated.h"

#ifndef LEAN_SHARE
// Sharing OpData and arrays between operators supposes that Eval never writes to them, as is so
// for the reference kernels and CMSIS-NN. On other cores other vendors' kernels are usual.
#if defined(__arm__) || defined(__aarch64__) || defined(__x86_64__) || defined(__i386__)
#define LEAN_SHARE 1
#else
#define LEAN_SHARE 0
#endif
#endif

#ifndef LEAN_OPDATA_MOST
#define LEAN_OPDATA_MOST 96  // bytes of OpData where TFLM has no temporary buffers
#endif

namespace lean {
namespace {

constexpr int kFilter = 1;  // input of all that is wrapped
constexpr size_t kArrays = 2;  // multipliers, shifts
constexpr int kKinds = 4;      // of operators, at most
constexpr char kMetadata[] = "LEAN_PARAMS";

// A block of persistent memory that was served from temporary memory instead.
struct Block {
  uint8_t* data = nullptr;
  size_t size = 0;
  TfLiteTensor* owner = nullptr;  // old TFLM: the temporary tensor whose memory it is
};

struct Hook {
  void* (*stock)(TfLiteContext*, size_t);
  TfLiteNode* node;
  int kind;                // of operator: which Prepare
  bool watch;              // only note what TFLM allocates, for tiles to come
  bool preparing = false;  // Init before, Prepare after
  bool exhausted = false;  // the arena is too small
  Block opdata;
  Block arrays[kArrays];
  size_t held = 0;         // arrays there are room for
  size_t given = 0;        // arrays that Prepare asked for
  alignas(16) uint8_t small[LEAN_OPDATA_MOST];  // OpData on old TFLM
};

bool g_enabled = true;
const uint32_t* g_pool = nullptr;
const uint32_t* g_hint = nullptr;  // record after the last one found: layers come in order
Hook* g_hook = nullptr;            // during Prepare() only
TfLiteNode* g_last = nullptr;      // chain of this sub-graph's nodes, through a field that
                                   // built-in operators do not use: custom_initial_data
const TfLiteEvalTensor* g_graph = nullptr;  // first tensor of that sub-graph
Stats g_stats;

// --- temporary memory -------------------------------------------------------------------------

// Current TFLM has temporary buffers.
template <class Context>
auto Borrow(Context* context, Hook* hook, Block* block, size_t size, int)
    -> decltype(context->AllocateTempBuffer(size, 16), true) {
  block->data = context->AllocateTempBuffer(size, 16);
  block->size = size;
  if (!block->data) hook->exhausted = true;
  return block->data != nullptr;
}
template <class Context>
auto Return(Context* context, Block* block, int)
    -> decltype(context->DeallocateTempBuffer(block->data)) {
  if (block->data) context->DeallocateTempBuffer(block->data);
  *block = Block();
}
// The end of temporary memory, or nullptr where it cannot be told.
template <class Context>
auto TempEnd(Context* context, int) -> decltype(context->AllocateTempBuffer(0, 1)) {
  uint8_t* end = context->AllocateTempBuffer(0, 1);
  if (end) context->DeallocateTempBuffer(end);
  return end;
}

// TFLM of 2023 has none: OpData goes to the stack, and an array into the zero points of a
// temporary tensor of the filter, which are as many as there are channels, if it has channels.
template <class Context>
bool Borrow(Context* context, Hook* hook, Block* block, size_t size, long) {
  if (block == &hook->opdata) {
    if (size > sizeof hook->small) return false;
    block->data = hook->small;
    block->size = size;
    return true;
  }
  TfLiteTensor* filter = context->AllocateTempInputTensor(hook->node, kFilter);
  if (!filter) return false;
  const auto* scales = static_cast<TfLiteAffineQuantization*>(filter->quantization.params);
  if (filter->quantization.type != kTfLiteAffineQuantization || !scales || !scales->zero_point ||
      scales->zero_point->size * sizeof(int32_t) < size) {
    context->DeallocateTempTfLiteTensor(filter);
    return false;
  }
  block->data = reinterpret_cast<uint8_t*>(scales->zero_point->data);
  block->size = size;
  block->owner = filter;
  return true;
}
template <class Context>
void Return(Context* context, Block* block, long) {
  if (block->owner) context->DeallocateTempTfLiteTensor(block->owner);
  *block = Block();
}
template <class Context>
uint8_t* TempEnd(Context*, long) {
  return nullptr;
}

void ReturnAll(TfLiteContext* context, Hook* hook) {
  tflite::MicroContext* micro = tflite::GetMicroContext(context);
  for (Block& block : hook->arrays) Return(micro, &block, 0);
  Return(micro, &hook->opdata, 0);
}

// The block that an allocation of this size is; nullptr for one that is none of ours.
Block* Asked(Hook* hook, size_t size) {
  if (!hook->preparing)  // the first block that Init asks for is OpData
    return hook->opdata.data ? nullptr : &hook->opdata;
  if (hook->given < hook->held && size == hook->arrays[hook->given].size)
    return &hook->arrays[hook->given++];
  return nullptr;
}

void* HookedAllocate(TfLiteContext* context, size_t size) {
  Hook* hook = g_hook;
  Block* block = Asked(hook, size);
  if (!block) return hook->stock(context, size);
  if (hook->watch) {
    block->data = static_cast<uint8_t*>(hook->stock(context, size));
    block->size = size;
    if (block->data) memset(block->data, 0, size);  // so that equal OpData has equal bytes
    return block->data;
  }
  if (!block->data && !Borrow(tflite::GetMicroContext(context), hook, block, size, 0))
    return hook->stock(context, size);
  memset(block->data, 0, size);
  return block->data;
}

// --- where blocks go --------------------------------------------------------------------------

// The one word of OpData that points to the block; nullptr if there is none, or more than one.
void** SlotOf(const Hook& hook, const Block& block) {
  void** found = nullptr;
  for (size_t at = 0; at + sizeof(void*) <= hook.opdata.size; at += sizeof(void*)) {
    void** slot = reinterpret_cast<void**>(hook.opdata.data + at);
    if (*slot != block.data) continue;
    if (found) return nullptr;
    found = slot;
  }
  return found;
}

// Whether all of it is as in the kernels that we know: OpData from Init, and in it one pointer to
// each array.
bool Recognised(const Hook& hook) {
  if (!hook.opdata.data || hook.node->user_data != hook.opdata.data) return false;
  for (size_t i = 0; i < hook.given; i++)
    if (!SlotOf(hook, hook.arrays[i])) return false;
  return true;
}

// The chain of nodes: each holds the one before it, and its kind and size of OpData.
TfLiteNode* Before(const TfLiteNode* node) {
  return static_cast<TfLiteNode*>(const_cast<void*>(node->custom_initial_data));
}
int Tag(const Hook& hook) { return static_cast<int>(hook.opdata.size) * kKinds + hook.kind; }
void Chain(const Hook& hook) {
  hook.node->custom_initial_data = g_last;
  hook.node->custom_initial_data_size = Tag(hook);
  g_last = hook.node;
}

// An equal array of an earlier tile: an operator of this kind, with the same filter.
const void* InTiles(const Hook& hook, const Block& block, size_t offset) {
  for (TfLiteNode* node = g_last; LEAN_SHARE && node; node = Before(node)) {
    if (node->custom_initial_data_size != Tag(hook)) continue;
    if (node->inputs->data[kFilter] != hook.node->inputs->data[kFilter]) continue;
    const void* other =
        *reinterpret_cast<void**>(static_cast<uint8_t*>(node->user_data) + offset);
    if (other && memcmp(other, block.data, block.size) == 0) return other;
  }
  return nullptr;
}

// A copy in persistent memory; nullptr if it would run into temporary memory, which TFLM does
// not check.
const void* InRam(TfLiteContext* context, const Hook& hook, const Block& block) {
  uint8_t* end = TempEnd(tflite::GetMicroContext(context), 0);
  uint8_t* made = static_cast<uint8_t*>(hook.stock(context, block.size));
  if (!made || (end && made < end)) return nullptr;
  for (const Block& live : hook.arrays)
    if (live.data && made < live.data + live.size && live.data < made + block.size) return nullptr;
  if (made < hook.opdata.data + hook.opdata.size && hook.opdata.data < made + block.size)
    return nullptr;
  memcpy(made, block.data, block.size);
  return made;
}

bool PlaceArray(TfLiteContext* context, const Hook& hook, const Block& block) {
  void** slot = SlotOf(hook, block);
  const size_t offset = static_cast<size_t>(reinterpret_cast<uint8_t*>(slot) - hook.opdata.data);
  const void* place = InPool(block.data, block.size);
  if (place) {
    g_stats.in_flash++;
  } else if ((place = InTiles(hook, block, offset)) != nullptr) {
    g_stats.shared++;
  } else if ((place = InRam(context, hook, block)) != nullptr) {
    g_stats.in_ram++;
  }
  *slot = const_cast<void*>(place);
  return place != nullptr;
}

bool PlaceOpData(TfLiteContext* context, const Hook& hook) {
  for (TfLiteNode* node = g_last; LEAN_SHARE && node; node = Before(node)) {
    if (node->custom_initial_data_size != Tag(hook)) continue;
    if (memcmp(node->user_data, hook.opdata.data, hook.opdata.size) != 0) continue;
    hook.node->user_data = node->user_data;
    g_stats.opdata_shared++;
    return true;
  }
  hook.node->user_data = const_cast<void*>(InRam(context, hook, hook.opdata));
  g_stats.opdata_in_ram++;
  return hook.node->user_data != nullptr;
}

// --- prepare ----------------------------------------------------------------------------------

// A small number for each Prepare function; kKinds if there are too many.
int KindOf(PrepareFunction prepare) {
  static PrepareFunction known[kKinds];
  int kind = 0;
  while (kind < kKinds && known[kind] && known[kind] != prepare) kind++;
  if (kind < kKinds) known[kind] = prepare;
  return kind;
}

bool SameFilterBefore(const TfLiteNode* node) {
  for (TfLiteNode* other = g_last; LEAN_SHARE && other; other = Before(other))
    if (other->inputs->data[kFilter] == node->inputs->data[kFilter]) return true;
  return false;
}

// Whether this TFLM's FULLY_CONNECTED knows filters with a scale for each channel.
template <class Data>
constexpr auto KnowsChannels(int) -> decltype(Data().is_per_channel, true) {
  return true;
}
template <class Data>
constexpr bool KnowsChannels(long) {
  return false;
}

// Scales of the filter; 0 if there are none.
int Scales(TfLiteContext* context, const TfLiteNode* node) {
  tflite::MicroContext* micro = tflite::GetMicroContext(context);
  TfLiteTensor* filter = micro->AllocateTempInputTensor(node, kFilter);
  if (!filter) return 0;
  const auto* known = static_cast<TfLiteAffineQuantization*>(filter->quantization.params);
  const bool there = filter->quantization.type == kTfLiteAffineQuantization && known && known->scale;
  const int count = there ? known->scale->size : 0;
  micro->DeallocateTempTfLiteTensor(filter);
  return count;
}

// The same for FULLY_CONNECTED, which keeps arrays for a filter of several scales only.
size_t ConnectedBytes(TfLiteContext* context, const TfLiteNode* node) {
  if (!g_pool || !KnowsChannels<tflite::OpDataFullyConnected>(0)) return 0;
  const int scales = Scales(context, node);
  return scales > 1 ? static_cast<size_t>(scales) * sizeof(int32_t) : 0;
}

// Bytes of each parameter array of an operator worth trying; 0 for all others.
size_t ArrayBytes(TfLiteContext* context, const TfLiteNode* node) {
  if (node->inputs->size <= kFilter) return 0;
  const TfLiteEvalTensor* input = tflite::micro::GetEvalInput(context, node, 0);
  const TfLiteEvalTensor* filter = tflite::micro::GetEvalInput(context, node, kFilter);
  const TfLiteEvalTensor* output = tflite::micro::GetEvalOutput(context, node, 0);
  if (!input || !filter || !output || (input->type != kTfLiteInt8 && input->type != kTfLiteInt16))
    return 0;
  if (filter->dims && filter->dims->size == 2) return ConnectedBytes(context, node);
  if (!output->dims || output->dims->size != 4 || !filter->dims || filter->dims->size != 4)
    return 0;
  // Cout: first dimension of CONV_2D's filter, last one of DEPTHWISE_CONV_2D's, and of the output.
  const int channels = output->dims->data[3];
  return channels > 0 ? static_cast<size_t>(channels) * sizeof(int32_t) : 0;
}

TfLiteStatus Stock(TfLiteContext* context, TfLiteNode* node, InitFunction init,
                   PrepareFunction prepare) {
  g_stats.stock++;
  node->user_data = init(context, static_cast<const char*>(node->builtin_data), 0);
  return node->user_data ? prepare(context, node) : kTfLiteError;
}

// How many arrays there is temporary memory for; the others are stock ones.
size_t BorrowArrays(TfLiteContext* context, Hook* hook, size_t bytes) {
  size_t held = 0;
  while (held < kArrays &&
         Borrow(tflite::GetMicroContext(context), hook, &hook->arrays[held], bytes, 0))
    held++;
  return held;
}

// Init and Prepare with persistent memory served from temporary memory.
TfLiteStatus RunHooked(TfLiteContext* context, Hook* hook, size_t bytes, InitFunction init,
                       PrepareFunction prepare) {
  TfLiteNode* node = hook->node;
  g_hook = hook;
  context->AllocatePersistentBuffer = HookedAllocate;
  node->user_data = init(context, static_cast<const char*>(node->builtin_data), 0);
  hook->preparing = true;
  TfLiteStatus status = kTfLiteError;
  if (node->user_data) {
    if (hook->watch)
      for (Block& block : hook->arrays) block.size = bytes;
    hook->held = hook->watch ? kArrays : BorrowArrays(context, hook, bytes);
    if (!hook->exhausted) status = prepare(context, node);
  }
  context->AllocatePersistentBuffer = hook->stock;
  g_hook = nullptr;
  return status;
}

}  // namespace

void SetEnabled(bool enabled) { g_enabled = enabled; }
const Stats& stats() { return g_stats; }
bool UsesPool() { return g_enabled && g_pool; }

void* Init(TfLiteContext* context, const char* data, size_t size, InitFunction stock) {
  if (!g_enabled) return stock(context, data, size);
  g_last = nullptr;  // a new interpreter: every Init comes before the first Prepare
  g_graph = nullptr;
  g_hint = g_pool;
  g_stats = Stats();
  return nullptr;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node, InitFunction init,
                     PrepareFunction prepare) {
  if (!g_enabled) return prepare(context, node);
  const TfLiteEvalTensor* graph = tflite::GetMicroContext(context)->GetEvalTensor(0);
  if (graph != g_graph) {  // tensor indices are those of a sub-graph
    g_graph = graph;
    g_last = nullptr;
  }
  const size_t bytes = ArrayBytes(context, node);
  const int kind = KindOf(prepare);
  if (bytes == 0 || kind == kKinds || (!g_pool && !LEAN_SHARE))
    return Stock(context, node, init, prepare);
  Hook hook;
  hook.stock = context->AllocatePersistentBuffer;
  hook.node = node;
  hook.kind = kind;
  hook.watch = !g_pool && !SameFilterBefore(node);
  TfLiteStatus status = RunHooked(context, &hook, bytes, init, prepare);
  const bool recognised = status == kTfLiteOk && Recognised(hook);
  if (hook.watch) {
    g_stats.stock++;
    if (recognised) Chain(hook);
    return status;
  }
  bool placed = recognised;
  for (size_t i = 0; placed && i < hook.given; i++)
    placed = PlaceArray(context, hook, hook.arrays[i]);
  if (placed) placed = PlaceOpData(context, hook);
  if (placed) Chain(hook);  // before the blocks, and their sizes, are given back
  ReturnAll(context, &hook);
  if (status != kTfLiteOk) return status;
  // Not recognised: once more as stock. At worst a scratch buffer is requested twice.
  if (!recognised) return Stock(context, node, init, prepare);
  if (!placed) {
    MicroPrintf("lean: the arena is too small for parameters that stay in RAM");
    return kTfLiteError;
  }
  return kTfLiteOk;
}

// --- the pool ---------------------------------------------------------------------------------

const void* InPool(const void* bytes, size_t size) {
  if (!UsesPool() || size == 0 || size % sizeof(uint32_t) != 0) return nullptr;
  const size_t words = size / sizeof(uint32_t);
  uint32_t first;
  memcpy(&first, bytes, sizeof first);
  const uint32_t* record = g_hint ? g_hint : g_pool;
  const uint32_t* const start = record;
  do {
    if (*record == 0) {  // the end: go on at the beginning
      record = g_pool;
      continue;
    }
    for (size_t at = 1; at + words <= 1 + static_cast<size_t>(*record); at++) {
      if (record[at] != first || memcmp(record + at, bytes, size) != 0) continue;
      g_hint = record + 1 + *record;
      return record + at;
    }
    record += 1 + *record;
  } while (record != start);
  return nullptr;
}

bool UsePool(const uint32_t* pool, size_t size) {
  g_pool = g_hint = nullptr;
  if (!pool || reinterpret_cast<uintptr_t>(pool) % sizeof(uint32_t) != 0) return false;
  const size_t words = size / sizeof(uint32_t);
  size_t at = 0;
  while (at < words && pool[at] != 0) {
    if (pool[at] >= words - at) return false;  // a record beyond the end
    at += 1 + pool[at];
  }
  if (at == 0 || at >= words) return false;  // empty, or without an end
  g_pool = g_hint = pool;
  return true;
}

bool UseModel(const void* model, size_t size) {
  UsePool(nullptr, 0);
  const tflite::Model* parsed = tflite::GetModel(model);
  if (!parsed->metadata() || !parsed->buffers()) return false;
  const uintptr_t start = reinterpret_cast<uintptr_t>(model);
  for (const tflite::Metadata* entry : *parsed->metadata()) {
    if (!entry->name() || strcmp(entry->name()->c_str(), kMetadata) != 0) continue;
    if (entry->buffer() >= parsed->buffers()->size()) continue;
    const auto* data = parsed->buffers()->Get(entry->buffer())->data();
    const uintptr_t at = data ? reinterpret_cast<uintptr_t>(data->data()) : 0;
    if (at < start || at - start > size || data->size() > size - (at - start)) continue;
    return UsePool(reinterpret_cast<const uint32_t*>(data->data()), data->size());
  }
  return false;
}

}  // namespace lean
