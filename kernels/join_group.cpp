// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/join_group.hpp"

#include "kernels/cuda/communicator.hpp"
#include "kernels/cuda/dispatch.hpp"
#include "kernels/processor.hpp"

#include <stdexcept>

namespace troupe {

std::string absence_of_communicators() {
  if constexpr (cuda::is_built)
    return cuda::absence_of_communicators();
  return absence_of_gpus();
}

group_id new_group() {
  if constexpr (cuda::is_built)
    return cuda::new_group();
  throw std::runtime_error{absence_of_gpus()};
}

std::unique_ptr<communicator> join_group(stream& stream, const group_member& as,
                                         const std::atomic<bool>& ended) {
  if constexpr (cuda::is_built)
    return cuda::join_group(*stream.gpu(), as, ended);
  throw std::runtime_error{absence_of_gpus()};
}

} // namespace troupe
