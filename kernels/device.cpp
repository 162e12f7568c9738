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
void run_in_order(const work& item, const Tell& notify) {
  if (item.run)
    item.run();
  for (const auto& part : item.parts) {
    if (part.run)
      part.run();
    if (part.on_done)
      notify(part.on_done);
  }
}

} // namespace

void work::compute() const {
  if (!inputs.empty())
    throw std::logic_error{"a GPU may still be at what a CPU is to read"};
  run_in_order(*this, [](const auto& on_done) { on_done(); });
}

void work::launch(const stream& stream, std::exception_ptr& failure) const {
  run_in_order(*this, [&](const std::function<void()>& on_done) {
    stream.on_complete([on_done, &failure](const std::exception_ptr& earlier_failure) {
      try {
        if (!earlier_failure)
          on_done();
      } catch (...) {
        failure = std::current_exception();
      }
    });
  });
}

void run_to_end(const std::function<void()>& arithmetic, const stream* stream) {
  if (!arithmetic)
    return;
  try {
    arithmetic();
  } catch (...) {
    try {
      if (stream != nullptr)
        stream->wait(); // kernels that were launched before still use the arrays
    } catch (...) {
      // the first failure is rethrown
    }
    throw;
  }
  if (stream != nullptr)
    stream->wait();
}

} // namespace troupe
