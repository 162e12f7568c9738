// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// What tells a GPU from others; empty for the CPU.
struct processor_facts {
  std::string kind; ///< GPUs of one kind make the same bits.
  std::string name; ///< No other GPU of any machine has it.
};

} // namespace troupe
