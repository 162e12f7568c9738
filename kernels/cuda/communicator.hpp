// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/communicator.hpp"
#include "kernels/cuda/stream.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace troupe::cuda {

// The functions of kernels/join_group.hpp on GPUs, with the same contracts.

std::string absence_of_communicators();

group_id new_group();

std::unique_ptr<communicator> join_group(stream& gpu_stream, const group_member& as,
                                         const std::atomic<bool>& ended);

} // namespace troupe::cuda
