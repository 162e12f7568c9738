// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/epilogue.hpp"

#include <string>
#include <vector>

namespace troupe {
class memory_space;
}

namespace troupe::cuda {

class stream;

/// Epilogues of a library that agree with this program's.
struct accepted_epilogues {
  std::vector<epilogue_kind> kinds;
  /// A sentence for each other epilogue, with the reason; empty if all agree.
  std::string errors;
};

/// Compares each epilogue of cuBLASLt with epilogues::finish() on a small product. The
/// norm of the difference must be at most 1e-2 of the result's norm. Waits for the
/// stream, which accepts no epilogue afterwards.
/// \param space memory that the stream's GPU and this machine access
/// \throws std::runtime_error if a kernel of this program fails
/// \throws std::bad_alloc if memory is short
accepted_epilogues compare_epilogues(stream& gpu_stream, memory_space& space);

} // namespace troupe::cuda
