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
  std::string errors; ///< A sentence for each other epilogue, with the reason.
};

/// Compares each epilogue of cuBLASLt with epilogues::finish() on a small product.
/// Results must agree within 1e-2, as norm of the difference over norm. Waits for the
/// stream, which accepts no epilogue afterwards.
/// \param space memory that the stream's GPU and this machine access
/// \throws std::runtime_error if a kernel of this program fails
accepted_epilogues compare_epilogues(stream& gpu_stream, memory_space& space);

} // namespace troupe::cuda
