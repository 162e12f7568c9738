#include "kernels/device.hpp"

#include "kernels/stream.hpp"

#include <algorithm>

namespace troupe {

bool work::computes() const {
  return run || std::ranges::any_of(parts, [](const auto& part) { return !!part.run; });
}

void work::compute() const {
  if (run)
    run();
  for (const auto& part : parts) {
    if (part.run)
      part.run();
    if (part.over)
      part.over();
  }
}

void work::launch(const stream& on, std::exception_ptr& failure) const {
  if (run)
    run();
  for (const auto& part : parts) {
    if (part.run)
      part.run();
    if (part.over)
      on.when_over([over = part.over, &failure](const std::exception_ptr& before) {
        try {
          if (!before)
            over();
        } catch (...) {
          failure = std::current_exception();
        }
      });
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
