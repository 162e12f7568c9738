// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/this_machine.hpp"

#include <fstream>

namespace troupe {

std::string this_machine() {
  std::string result;
  std::ifstream{"/proc/sys/kernel/random/boot_id"} >> result;
  return result;
}

} // namespace troupe
