// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe::on_host {

// Functions that kernels call (cuda/async_copy.hpp). Copies are made as late as a GPU
// may make a copy: when the thread that started the copy waits. The start and the wait
// both report the write to the memory watch, because a GPU may write from the start on.

/// Starts a copy.
/// \param is_there if false, zeros are written, and nothing is read
void begin_copy(void* to, const void* from, std::int64_t bytes, bool is_there);
void wait_for_copies();

} // namespace troupe::on_host
