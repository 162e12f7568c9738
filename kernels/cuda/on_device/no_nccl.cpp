// SPDX-License-Identifier: BSD-3-Clause
// Groups of GPUs in a build without NCCL: all functions fail.

#include "kernels/cuda/communicator.hpp"

#include <stdexcept>

namespace troupe::cuda {

std::string absence_of_communicators() {
  return "this build is without NCCL: cmake found no nccl.h";
}

group_id new_group() {
  throw std::runtime_error{absence_of_communicators()};
}

std::unique_ptr<communicator> join_group(stream&, const group_member&,
                                         const std::atomic<bool>&) {
  throw std::runtime_error{absence_of_communicators()};
}

} // namespace troupe::cuda
