// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {
class memory_space;
}

namespace troupe::cuda {

class stream;

/// Lets a stream accept each epilogue of cuBLASLt that agrees with epilogues::finish()
/// on a small product. Results must agree within 1e-2, as norm of the difference over
/// norm. Waits for the stream.
///
/// Returns a sentence for each epilogue that is not accepted, with the reason; empty if
/// all are accepted.
/// \param space memory that the stream's GPU and this machine access
/// \throws std::runtime_error if a kernel of this program fails
std::string accept_epilogues(stream& gpu_stream, memory_space& space);

} // namespace troupe::cuda
