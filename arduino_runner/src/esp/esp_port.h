// A line of bytes on a chip of Espressif's, whichever driver stands behind it.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace runner {

class EspPort {
 public:
  // False where the driver does not start.
  virtual bool Begin() = 0;
  // Bytes read, at most `most`. Waits for the first one, but not for long: other tasks run then.
  virtual size_t Read(uint8_t* bytes, size_t most) = 0;
  // Sends, or drops what nobody takes: the host asks again.
  virtual void Write(const uint8_t* bytes, size_t size) = 0;

 protected:
  ~EspPort() = default;
};

}  // namespace runner
