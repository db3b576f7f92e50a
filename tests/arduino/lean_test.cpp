// The lean wrappers against made-up kernels: lean_test SECONDS.
//
// Law: whatever the pool, the arena and the kernel, a Prepare either fails or leaves OpData and
// arrays with the values that the kernel computed; nothing is written outside the arena, all
// temporary memory is given back, and the pool is never written.
#include <chrono>
#include <cstdio>
#include <memory>

#include "lean/lean.h"
#include "check.h"

namespace {

typedef std::vector<uint32_t> Words;


uint32_t g_state = 1;
uint32_t Below(uint32_t limit) {
  g_state ^= g_state << 13;
  g_state ^= g_state >> 17;
  g_state ^= g_state << 5;
  return g_state % limit;
}

// --- kernels --------------------------------------------------------------------------------------

// How a kernel keeps its pointers. Only kPlain is what the wrappers know.
enum Kind { kPlain, kElsewhere, kTwice, kNoInit, kFails, kOdd, kKinds };

struct Work {  // what a node computes: stands in for scales
  Kind kind;
  int channels;
  uint32_t multiplier, shift, unique;
  bool connected = false;  // FULLY_CONNECTED: arrays only where there are several scales
  bool arrays = true;
  Work(Kind k, int c, uint32_t m, uint32_t s, uint32_t u)
      : kind(k), channels(c), multiplier(m), shift(s), unique(u) {}
};

struct OpData {
  uint32_t first;
  int32_t* multipliers;
  int32_t* shifts;
  int32_t* again;
  uint32_t unique;
};

std::vector<std::pair<int32_t*, int32_t*>> g_elsewhere;

uint32_t Value(uint32_t base, int channel) { return base + static_cast<uint32_t>(channel) % 3; }

void* KernelInit(TfLiteContext* context, const char* data, size_t) {
  const Work* work = reinterpret_cast<const Work*>(data);
  void* made = context->AllocatePersistentBuffer(context, sizeof(OpData));
  if (work->kind == kNoInit) return nullptr;
  return work->kind == kOdd ? static_cast<uint8_t*>(made) + 0 : made;
}

TfLiteStatus KernelPrepare(TfLiteContext* context, TfLiteNode* node) {
  const Work* work = static_cast<const Work*>(node->builtin_data);
  OpData* data = static_cast<OpData*>(node->user_data);
  tflite::MicroContext* micro = tflite::GetMicroContext(context);
  TfLiteTensor* fetched = micro->AllocateTempInputTensor(node, 1);
  if (!fetched) return kTfLiteError;
  if (!work->arrays) {
    micro->DeallocateTempTfLiteTensor(fetched);
    if (work->kind == kFails) return kTfLiteError;
    memset(data, 0, sizeof *data);
    data->first = work->multiplier;
    data->unique = work->unique;
    return kTfLiteOk;
  }
  const size_t bytes = 4 * static_cast<size_t>(work->channels);
  // Another allocation first, of a size of its own or of the arrays' size.
  if (work->kind == kOdd)
    context->AllocatePersistentBuffer(context, work->unique % 2 ? bytes : bytes + 4);
  auto* multipliers = static_cast<int32_t*>(context->AllocatePersistentBuffer(context, bytes));
  auto* shifts = static_cast<int32_t*>(context->AllocatePersistentBuffer(context, bytes));
  const bool room = multipliers && shifts &&
                    reinterpret_cast<uint8_t*>(shifts) >= micro->start;
  micro->DeallocateTempTfLiteTensor(fetched);
  if (!room || work->kind == kFails) return kTfLiteError;
  for (int i = 0; i < work->channels; i++) {
    multipliers[i] = static_cast<int32_t>(Value(work->multiplier, i));
    shifts[i] = static_cast<int32_t>(Value(work->shift, i));
  }
  memset(data, 0, sizeof *data);
  data->first = work->multiplier;
  data->unique = work->unique;
  if (work->kind == kElsewhere) {
    g_elsewhere.push_back({multipliers, shifts});
  } else {
    data->multipliers = multipliers;
    data->shifts = shifts;
    data->again = work->kind == kTwice ? multipliers : nullptr;
  }
  return kTfLiteOk;
}

}  // namespace

void MicroPrintf(const char*, ...) {}

namespace tflite {
TfLiteRegistration Register_CONV_2D() { return {KernelInit, KernelPrepare}; }
TfLiteRegistration Register_DEPTHWISE_CONV_2D() { return {KernelInit, KernelPrepare}; }
TfLiteRegistration Register_FULLY_CONNECTED() { return {KernelInit, KernelPrepare}; }
static const uint32_t kParameters[7] = {1, 2, 3, 0, 1, 1, 1};
TfLiteStatus ParseConv2D(const Operator*, ErrorReporter*, BuiltinDataAllocator* allocator, void** out) {
  *out = allocator->Allocate(sizeof kParameters, 4);
  if (!*out) return kTfLiteError;
  memcpy(*out, kParameters, sizeof kParameters);
  return kTfLiteOk;
}
TfLiteStatus ParseDepthwiseConv2D(const Operator* op, ErrorReporter* reporter,
                                  BuiltinDataAllocator* allocator, void** out) {
  return ParseConv2D(op, reporter, allocator, out);
}
const Model* GetModel(const void* data) { return static_cast<const Model*>(data); }
}  // namespace tflite

namespace {

// --- a model of such nodes ------------------------------------------------------------------------

struct Net {
  explicit Net(size_t arena_bytes)
      : arena(new uint8_t[arena_bytes + 16]),
        base(reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(arena.get()) + 15) / 16 * 16)),
        micro(base, arena_bytes), size(arena_bytes) {
    context.impl_ = &micro;
    context.AllocatePersistentBuffer = [](TfLiteContext* c, size_t bytes) {
      return tflite::GetMicroContext(c)->Persistent(bytes);
    };
    resolver.AddConv2D();
    resolver.AddDepthwiseConv2D();
    resolver.AddFullyConnected();
  }
  // Tensors: 0 data, then filters, then one result a node.
  void Add(const Work& one, int filter, bool per_channel = true) {
    works.push_back(std::unique_ptr<Work>(new Work(one)));
    filters.push_back(filter);
    points.push_back(per_channel ? one.channels : 1);
    works.back()->arrays = !one.connected || points.back() > 1;
  }
  // False when AllocateTensors would fail.
  bool AllocateTensors() {
    const size_t count = works.size();
    micro.tensors.assign(1 + 2 * count, TfLiteEvalTensor{kTfLiteInt8, nullptr});
    micro.zero_points.assign(1 + 2 * count, 0);
    dims.assign(1 + 2 * count, TfLiteIntArray{4, {1, 4, 4, 2}});
    lists.assign(2 * count, TfLiteIntArray{2, {}});
    nodes.assign(count, TfLiteNode{});
    for (size_t i = 0; i < dims.size(); i++) micro.tensors[i].dims = &dims[i];
    for (size_t i = 0; i < count; i++) {
      const int filter = 1 + filters[i], result = static_cast<int>(1 + count + i);
      micro.zero_points[static_cast<size_t>(filter)] = points[i];
      dims[static_cast<size_t>(result)].data[3] = works[i]->channels;
      dims[static_cast<size_t>(filter)].size = works[i]->connected ? 2 : 4;
      lists[2 * i] = {2, {0, filter}};
      lists[2 * i + 1] = {1, {result}};
      nodes[i].inputs = &lists[2 * i];
      nodes[i].outputs = &lists[2 * i + 1];
      nodes[i].builtin_data = works[i].get();
    }
    for (TfLiteNode& node : nodes)
      node.user_data = Of(node).init(&context, static_cast<char*>(node.builtin_data), 0);
    for (TfLiteNode& node : nodes) {
      if (Of(node).prepare(&context, &node) != kTfLiteOk) return false;
      if (micro.live != 0) temp_lost = true;
      micro.temp = micro.start;
    }
    return true;
  }
  const TfLiteRegistration& Of(const TfLiteNode& node) const {
    return static_cast<Work*>(node.builtin_data)->connected ? resolver.connected : resolver.conv;
  }
  // Whether node i holds what its kernel computed.
  bool Right(size_t i) const {
    const OpData* data = static_cast<const OpData*>(nodes[i].user_data);
    const Work& work = *works[i];
    if (!data || data->first != work.multiplier || data->unique != work.unique) return false;
    if (work.kind == kElsewhere || !work.arrays) return !data->multipliers && !data->shifts;
    if (data->again != (work.kind == kTwice ? data->multipliers : nullptr)) return false;
    for (int c = 0; c < work.channels; c++) {
      if (static_cast<uint32_t>(data->multipliers[c]) != Value(work.multiplier, c)) return false;
      if (static_cast<uint32_t>(data->shifts[c]) != Value(work.shift, c)) return false;
    }
    return true;
  }
  size_t tail_used() const { return static_cast<size_t>(base + size - micro.tail); }

  std::unique_ptr<uint8_t[]> arena;
  uint8_t* base;
  tflite::MicroContext micro;
  size_t size;
  TfLiteContext context;
  lean::OpResolver<2> resolver;
  std::vector<std::unique_ptr<Work>> works;
  std::vector<int> filters, points;
  std::vector<TfLiteIntArray> dims, lists;
  std::vector<TfLiteNode> nodes;
  bool temp_lost = false;
};

void Record(Words* pool, uint32_t base, int channels) {
  pool->push_back(static_cast<uint32_t>(channels));
  for (int i = 0; i < channels; i++) pool->push_back(Value(base, i));
}
Words PoolOf(const std::vector<std::unique_ptr<Work>>& works) {
  Words pool;
  for (const auto& work : works) {
    Record(&pool, work->multiplier, work->channels);
    Record(&pool, work->shift, work->channels);
  }
  pool.push_back(0);
  return pool;
}

constexpr size_t kOpDataRoom = (sizeof(OpData) + 15) / 16 * 16;
constexpr size_t kArrayRoom = 64;  // of 16 channels
Work Plain(uint32_t multiplier, uint32_t shift, uint32_t unique = 0) {
  return {kPlain, 16, multiplier, shift, unique};
}

// --- tests ----------------------------------------------------------------------------------------

void TestArraysGoToThePool() {
  Net net(4096);
  net.Add(Plain(100, 7), 0);
  net.Add(Plain(200, 9), 1);
  const Words pool = PoolOf(net.works);
  CHECK(lean::UsePool(pool.data(), pool.size() * 4));
  CHECK(net.AllocateTensors() && net.Right(0) && net.Right(1) && !net.temp_lost);
  CHECK(net.tail_used() == 2 * kOpDataRoom);
  CHECK(lean::stats().in_flash == 4 && lean::stats().in_ram == 0);
  const auto* data = static_cast<OpData*>(net.nodes[1].user_data);
  CHECK(data->multipliers == reinterpret_cast<const int32_t*>(pool.data()) + 2 * 17 + 1);
}

void TestFullyConnected() {
  for (bool with_pool : {false, true})
    for (bool per_channel : {false, true}) {
      Net net(4096);
      Work work = Plain(100, 7);
      work.connected = true;
      net.Add(work, 0, per_channel);
      const Words pool = PoolOf(net.works);
      lean::UsePool(with_pool ? pool.data() : nullptr, with_pool ? pool.size() * 4 : 0);
      CHECK(net.AllocateTensors() && net.Right(0) && !net.temp_lost);
#ifdef STUB_2023  // its kernels know one scale only
      const bool served = false;
#else
      const bool served = with_pool && per_channel;
#endif
      CHECK(lean::stats().stock == (served ? 0 : 1) && lean::stats().in_flash == (served ? 2 : 0));
      CHECK(net.tail_used() == kOpDataRoom + (per_channel && !served ? 2 * kArrayRoom : 0));
    }
}

void TestTilesShare() {
  for (bool with_pool : {false, true}) {
    Net net(4096);
    net.Add(Plain(100, 7), 0);
    const Words pool = PoolOf(net.works);
    for (int i = 1; i < 4; i++) net.Add(Plain(100, 7), 0);
    lean::UsePool(with_pool ? pool.data() : nullptr, with_pool ? pool.size() * 4 : 0);
    CHECK(net.AllocateTensors() && !net.temp_lost);
    for (size_t i = 0; i < 4; i++) CHECK(net.Right(i));
    CHECK(net.tail_used() == kOpDataRoom + (with_pool ? 0 : 2 * kArrayRoom));
    CHECK(lean::stats().opdata_shared == 3);
    CHECK(net.nodes[0].user_data == net.nodes[3].user_data);
  }
  Net net(4096);  // another scratch buffer: OpData of its own, the arrays still shared
  net.Add(Plain(100, 7, 1), 0);
  net.Add(Plain(100, 7, 2), 0);
  lean::UsePool(nullptr, 0);
  CHECK(net.AllocateTensors() && net.Right(0) && net.Right(1));
  CHECK(net.tail_used() == 2 * kOpDataRoom + 2 * kArrayRoom && lean::stats().shared == 2);
}

void TestOtherKernelsStayStock() {
  for (Kind kind : {kElsewhere, kTwice, kOdd}) {
    Net net(4096);
    net.Add({kind, 16, 100, 7, 0}, 0);
    net.Add(Plain(100, 7), 1);
    const Words pool = PoolOf(net.works);
    CHECK(lean::UsePool(pool.data(), pool.size() * 4));
    g_elsewhere.clear();
    CHECK(net.AllocateTensors() && net.Right(0) && net.Right(1) && !net.temp_lost);
    if (kind != kElsewhere) continue;
    // The last Prepare's arrays lie in the tail, with their values.
    const auto arrays = g_elsewhere.back();
    CHECK(reinterpret_cast<uint8_t*>(arrays.first) >= net.micro.tail);
    for (int c = 0; c < 16; c++) CHECK(static_cast<uint32_t>(arrays.first[c]) == Value(100, c));
    CHECK(lean::stats().stock == 1);
  }
  Net net(4096);
  net.Add({kFails, 16, 100, 7, 0}, 0);
  CHECK(!net.AllocateTensors() && net.micro.live == 0);
}

void TestOffIsStockAllocationByAllocation() {
  lean::SetEnabled(false);
  Net net(4096);
  net.Add(Plain(100, 7), 0);
  net.Add(Plain(100, 7), 0);
  const Words pool = PoolOf(net.works);
  CHECK(lean::UsePool(pool.data(), pool.size() * 4) && !lean::UsesPool());
  CHECK(net.AllocateTensors() && net.Right(0) && net.Right(1));
  const std::vector<size_t> stock = {sizeof(OpData), sizeof(OpData), 64, 64, 64, 64};
  CHECK(net.micro.sizes == stock);
  lean::SetEnabled(true);
}

void TestPoolsAreChecked() {
  const Words good = {2, 5, 6, 1, 7, 0}, open = {1, 7}, beyond = {3, 1, 2, 0}, huge = {0xFFFFFFFF, 1, 0};
  const Words empty = {0};
  CHECK(lean::UsePool(good.data(), 24));
  const uint32_t wanted[2] = {6, 1};
  CHECK(lean::InPool(&good[1], 8) == &good[1] && lean::InPool(&good[2], 4) == &good[2]);
  CHECK(lean::InPool(&good[4], 4) == &good[4] && lean::InPool(wanted, 8) == nullptr);
  CHECK(lean::InPool(&good[1], 0) == nullptr && lean::InPool(&good[1], 3) == nullptr);
  for (const Words* bad : {&open, &beyond, &huge, &empty}) {
    CHECK(!lean::UsePool(bad->data(), bad->size() * 4) && !lean::UsesPool());
    CHECK(lean::InPool(&good[1], 4) == nullptr);
  }
  CHECK(!lean::UsePool(reinterpret_cast<const uint32_t*>(
                           reinterpret_cast<const uint8_t*>(good.data()) + 1), 20));
  CHECK(!lean::UsePool(nullptr, 100));
  CHECK(!lean::UsePool(good.data(), 20));  // cut before its end
}

void TestModelsMetadata() {
  struct {
    tflite::Model model;
    uint32_t pool[3];
  } file = {{}, {1, 7, 0}};
  tflite::Model& model = file.model;
  const tflite::Bytes bytes{reinterpret_cast<const uint8_t*>(file.pool), 12};
  const tflite::Buffer buffer{&bytes}, none{nullptr};
  const tflite::Text other{"LEAN_PARAM"}, name{"LEAN_PARAMS"};
  const tflite::Metadata wrong{&other, 0}, nameless{nullptr, 0}, outside{&name, 9}, right{&name, 0};
  const size_t everything = sizeof file;
  model.held.push_back(&buffer);
  for (const tflite::Metadata* entry : {&wrong, &nameless, &outside}) {
    model.entries.push_back(entry);
    CHECK(!lean::UseModel(&model, everything));
  }
  model.entries.push_back(&right);
  CHECK(lean::UseModel(&model, everything) && lean::UsesPool());
  CHECK(!lean::UseModel(&model, offsetof(decltype(file), pool) + 11));  // cut off
  model.held[0] = &none;
  CHECK(!lean::UseModel(&model, everything));
}

void TestParametersComeFromThePool() {
  struct Heap : tflite::BuiltinDataAllocator {
    void* Allocate(size_t size, size_t) override { return memory.resize(size), memory.data(); }
    void Deallocate(void*) override {}
    std::vector<uint8_t> memory;
  } heap;
  Net net(64);
  const auto parser = net.resolver.GetOpDataParser(tflite::BuiltinOperator_CONV_2D);
  const Words pool = {9, 5, 1, 2, 3, 0, 1, 1, 1, 4, 0}, other = {1, 7, 0};
  void* parsed = nullptr;
  lean::UsePool(pool.data(), pool.size() * 4);
  CHECK(parser(nullptr, nullptr, &heap, &parsed) == kTfLiteOk && parsed == &pool[2]);
  CHECK(heap.memory.empty());
  lean::UsePool(other.data(), 12);
  CHECK(parser(nullptr, nullptr, &heap, &parsed) == kTfLiteOk && parsed == heap.memory.data());
  CHECK(memcmp(parsed, tflite::kParameters, 28) == 0);
}

// --- the law, at random ---------------------------------------------------------------------------

void RandomRound() {
  Net net(Below(3) ? 6000 : 200 + Below(3000));
  const uint32_t count = 1 + Below(8);
  for (uint32_t i = 0; i < count; i++) {
    const Kind kind = Below(3) ? kPlain : static_cast<Kind>(Below(kKinds));
    const int channels = static_cast<int>(1 + Below(24));
    Work work = {kind, channels, 100 * Below(3), 10 * Below(3), Below(2) ? 0 : i};
    const int filter = static_cast<int>(Below(count));
    work.connected = Below(3) == 0;
    // Tiles of one filter have its channels and values.
    for (size_t other = 0; other < net.works.size(); other++)
      if (net.filters[other] == filter) {
        work.channels = net.works[other]->channels;
        work.connected = net.works[other]->connected;
        work.multiplier = net.works[other]->multiplier + (Below(4) ? 0 : 1);
      }
    net.Add(work, filter, Below(5) != 0);
  }
  Words pool = PoolOf(net.works);
  const uint32_t choice = Below(4);
  if (choice == 0)
    for (uint32_t i = Below(6); i > 0; i--) pool[Below(static_cast<uint32_t>(pool.size()))] ^= 1u << Below(32);
  if (choice == 1) pool.resize(Below(static_cast<uint32_t>(pool.size())));
  const bool used = choice != 2 && lean::UsePool(pool.data(), pool.size() * 4);
  if (!used) lean::UsePool(nullptr, 0);
  const Words before = pool;
  g_elsewhere.clear();
  const bool done = net.AllocateTensors();
  CHECK(pool == before);
  CHECK(!net.temp_lost);
  for (size_t i = 0; done && i < net.works.size(); i++) CHECK(net.Right(i));
}

}  // namespace

int main(int argc, char** argv) {
  TestArraysGoToThePool();
  TestFullyConnected();
  TestTilesShare();
  TestOtherKernelsStayStock();
  TestOffIsStockAllocationByAllocation();
  TestPoolsAreChecked();
  TestModelsMetadata();
  TestParametersComeFromThePool();
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  const auto start = std::chrono::steady_clock::now();
  int rounds = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds)
    for (int i = 0; i < 200; i++, rounds++) RandomRound();
  lean::UsePool(nullptr, 0);
  std::printf("%d checks, %d failures, %d rounds\n", g_checks, g_failures, rounds);
  return g_failures != 0;
}
