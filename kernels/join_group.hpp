// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/communicator.hpp"
#include "kernels/stream.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace troupe {

/// Why GPUs of this machine cannot be in such groups, in words; empty: they can.
std::string absence_of_communicators();

/// \throws std::runtime_error
group_id new_group();

/// Joins a group, and waits for all other members. \param on a stream of a GPU, for
/// nothing else; outlives it \param ended may be set by another thread: nobody waits
/// any longer \throws std::runtime_error
std::unique_ptr<communicator> join_group(stream& on, const membership& as,
                                         const std::atomic<bool>& ended);

} // namespace troupe
