// SPDX-License-Identifier: BSD-3-Clause
// Creates and joins groups of GPUs; for builds with and without CUDA.
#pragma once

#include "kernels/communicator.hpp"
#include "kernels/stream.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace troupe {

/// Returns one sentence that says why GPUs of this machine cannot join groups; empty if
/// the GPUs can.
std::string absence_of_communicators();

/// Creates the identity of a new group.
/// \throws std::runtime_error if the build or the machine lacks NCCL, or NCCL fails
group_id new_group();

/// Joins a group, and waits for all other members.
/// \param stream a stream of a GPU, used for nothing else; must outlive the
/// communicator
/// \param ended may be set to true by another thread: the wait then ends with an error;
/// not used after the call
/// \throws std::runtime_error if the member cannot join, or the wait has been ended
std::unique_ptr<communicator> join_group(stream& stream, const group_member& as,
                                         const std::atomic<bool>& ended);

} // namespace troupe
