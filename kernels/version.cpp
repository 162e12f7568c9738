// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/version.hpp"

namespace troupe {

std::string version() {
  return TROUPE_VERSION;
}

} // namespace troupe
