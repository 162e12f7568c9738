// SPDX-License-Identifier: BSD-3-Clause
#include "plan/run_machine.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe {

processor run_machine::processor_of(int rank) const {
  return processors.empty()
           ? processor{}
           : processors[static_cast<std::size_t>(rank) % processors.size()];
}

bool run_machine::has_gpus() const {
  return std::ranges::any_of(processors, &processor::is_gpu);
}

bool run_machine::mixes_processors(int ranks) const {
  for (int rank = 1; rank < ranks; ++rank)
    if (processor_of(rank).is_gpu() != processor_of(0).is_gpu())
      return true;
  return false;
}

memory_space& run_machine::memory_at(int rank) const {
  const auto local_processor = processor_of(rank);
  const auto gpu = std::ranges::find_if(processors, &processor::is_gpu);
  return memory_of(local_processor.is_gpu() || gpu == processors.end() ? local_processor
                                                                       : *gpu);
}

memory_space& run_machine::memory_for_samples() const {
  const auto gpu = std::ranges::find_if(processors, &processor::is_gpu);
  return gpu == processors.end() ? host_memory() : memory_of_samples(*gpu);
}

} // namespace troupe
