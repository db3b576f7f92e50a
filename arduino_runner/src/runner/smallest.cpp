#include "smallest.h"

#include "protocol.h"

namespace runner {
namespace {

constexpr uint32_t kAlignment = 16;

struct Counted {
  Trials* ask;
  uint32_t step;
  uint16_t* trials;
  bool Works(uint32_t steps) {
    if (*trials < 0xFFFF) ++*trials;
    return ask->Works(steps * step);
  }
};

}  // namespace

uint32_t Smallest(Trials* ask, uint32_t lowest, uint32_t highest, uint32_t step,
                  uint16_t* trials) {
  if (step == 0) step = kAlignment;
  Counted trial{ask, step, trials};
  // In multiples of step: `low` fails or is not to be tried, `high` works.
  const uint32_t first = lowest / step + (lowest % step != 0);
  uint32_t high = highest / step;
  if (high < first || !trial.Works(high)) return highest;  // no multiple does
  uint32_t low = first;  // low - 1 is out of bounds
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (trial.Works(middle))
      high = middle;
    else
      low = middle + 1;
  }
  // Within an alignment, what works is not monotone: look below once more, from the bottom up.
  const uint32_t span = (2 * kAlignment - 1) / step;
  const uint32_t bottom = high - first > span ? high - span : first;
  for (uint32_t size = bottom; size < high; size++)
    if (trial.Works(size)) return size * step;
  return high * step;
}

}  // namespace runner
