// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {
class memory_space;
}

namespace troupe::cuda {

class stream;

/// Runs each epilogue of cuBLASLt on a small product, and compares the results with
/// those of epilogues::finish(). Results must agree within 1e-2, as norm of the
/// difference over norm. Waits for the stream.
///
/// Returns one sentence that says why the library's epilogues cannot be used; empty if
/// all agree.
/// \param space memory that the stream's GPU and this machine access
/// \throws std::runtime_error if a kernel of this program fails
std::string error_of_epilogues(stream& gpu_stream, memory_space& space);

} // namespace troupe::cuda
