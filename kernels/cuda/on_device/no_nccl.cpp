// SPDX-License-Identifier: BSD-3-Clause
// No groups of GPUs: NCCL was not there when this was built.

#include "kernels/cuda/communicator.hpp"

#include <stdexcept>

namespace troupe::cuda {

std::string absence_of_communicators() {
  return "this build is without NCCL: cmake found no nccl.h";
}

group_id new_group() {
  throw std::runtime_error{absence_of_communicators()};
}

std::unique_ptr<communicator> join_group(stream&, const membership&,
                                         const std::atomic<bool>&) {
  throw std::runtime_error{absence_of_communicators()};
}

} // namespace troupe::cuda
