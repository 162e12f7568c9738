// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The identity of a GPU, as texts; empty for the CPU.
struct processor_facts {
  std::string kind; ///< GPUs of one kind compute the same bits.
  std::string name; ///< Unique among the GPUs of all machines.
};

} // namespace troupe
