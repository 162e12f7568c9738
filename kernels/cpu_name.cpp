// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cpu_name.hpp"

#include <fstream>

namespace troupe {

std::string name_of_cpu() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line);)
    if (const auto colon = line.find(": ");
        line.starts_with("model name") && colon != line.npos)
      return line.substr(colon + 2);
  return "of unknown name";
}

} // namespace troupe
