#include "kernels/device.hpp"

#include <algorithm>

namespace troupe {

bool work::computes() const {
  return run || std::ranges::any_of(parts, [](const auto& part) { return !!part.run; });
}

} // namespace troupe
