// Models: one that is uploaded, and those that are compiled in; and the arena.
//
//   one block    | uploaded model, rounded up to 16 |   arena ...            |
//   two blocks   | uploaded model (PSRAM)   |      | arena (internal RAM)   |
//
// In one block, an uploaded model and the arena share it, and a compiled-in model leaves all of it
// to the arena. This file must not know what a model is, or which RAM a block is.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace runner {

struct BuiltinModel {
  const char* name;
  const uint8_t* data;  // aligned to 16
  uint32_t size;
};

struct Block {
  uint8_t* bytes;  // aligned to 16
  size_t size;
};

class Store {
 public:
  Store(uint8_t* block, size_t size, const BuiltinModel* models, size_t count)
      : upload_{block, size}, arena_{block, size}, models_(models), count_(count) {}
  Store(const Block& upload, const Block& arena, const BuiltinModel* models, size_t count)
      : upload_(upload), arena_(arena), models_(models), count_(count) {}

  bool shared() const { return upload_.bytes == arena_.bytes; }
  size_t upload_room() const { return upload_.size; }  // of the largest model
  size_t most_arena() const { return arena_.size; }    // with no model uploaded
  size_t models() const { return count_; }
  const BuiltinModel& model_at(size_t index) const { return models_[index]; }

  // Upload. Begin fails when the model does not fit; Append when the bytes do not.
  bool Begin(uint32_t size, uint32_t crc);
  bool Append(const uint8_t* data, size_t size);
  uint32_t expected() const { return expected_; }
  uint32_t received() const { return received_; }
  uint32_t announced_crc() const { return crc_; }
  bool begun() const { return begun_; }
  // The whole model is there: it becomes current.
  void End();
  void Select(size_t index);
  void Discard();

  // The current model; size 0 without one.
  const uint8_t* model() const { return model_; }
  uint32_t model_size() const { return model_size_; }
  uint8_t* arena() const { return arena_.bytes + uploaded_; }
  size_t arena_room() const { return arena_.size - uploaded_; }

 private:
  Block upload_, arena_;
  const BuiltinModel* models_;
  size_t count_;
  bool begun_ = false;
  uint32_t expected_ = 0, received_ = 0, crc_ = 0;
  const uint8_t* model_ = nullptr;
  uint32_t model_size_ = 0;
  size_t uploaded_ = 0;  // bytes of the arena's block that an uploaded model takes
};

}  // namespace runner
