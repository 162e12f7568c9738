// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe::on_host {

// Called by kernels (cuda/async_copy.hpp). Copies are made as late as a GPU may make
// them: when the thread that has begun them waits. Who looks on learns of both moments,
// as a GPU may write from the first on.

/// \param is_there else zeros are written
void begin_copy(void* to, const void* from, std::int64_t bytes, bool is_there);
void wait_for_copies();

} // namespace troupe::on_host
