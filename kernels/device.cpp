// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/device.hpp"

#include "kernels/stream.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe {

bool work::computes() const {
  return run || std::ranges::any_of(parts, [](const auto& part) { return !!part.run; });
}

namespace {

/// \param notify receives the callback of each part, after the part ran
template <class Tell>
void run_in_order(const work& what, const Tell& tell) {
  if (what.run)
    what.run();
  for (const auto& part : what.parts) {
    if (part.run)
      part.run();
    if (part.over)
      tell(part.over);
  }
}

} // namespace

void work::compute() const {
  if (!inputs.empty())
    throw std::logic_error{"a GPU may still be at what a CPU is to read"};
  run_in_order(*this, [](const auto& over) { over(); });
}

void work::launch(const stream& on, std::exception_ptr& failure) const {
  run_in_order(*this, [&](const std::function<void()>& over) {
    on.when_over([over, &failure](const std::exception_ptr& before) {
      try {
        if (!before)
          over();
      } catch (...) {
        failure = std::current_exception();
      }
    });
  });
}

void run_to_end(const std::function<void()>& arithmetic, const stream* on) {
  if (!arithmetic)
    return;
  try {
    arithmetic();
  } catch (...) {
    try {
      if (on != nullptr)
        on->wait(); // kernels that were launched before still use the arrays
    } catch (...) {
      // the first failure is rethrown
    }
    throw;
  }
  if (on != nullptr)
    on->wait();
}

} // namespace troupe
