#include "kernels/device.hpp"

#include "kernels/stream.hpp"

#include <algorithm>

namespace troupe {

bool work::computes() const {
  return run || std::ranges::any_of(parts, [](const auto& part) { return !!part.run; });
}

void work::compute(const stream* on) const {
  run_to_end(run, on);
  for (const auto& part : parts) {
    run_to_end(part.run, on);
    if (part.over)
      part.over();
  }
}

void run_to_end(const std::function<void()>& arithmetic, const stream* on) {
  if (!arithmetic)
    return;
  try {
    arithmetic();
  } catch (...) {
    try {
      if (on != nullptr)
        on->wait(); // what was launched before still uses its arrays
    } catch (...) {
      // the first failure is told
    }
    throw;
  }
  if (on != nullptr)
    on->wait();
}

} // namespace troupe
