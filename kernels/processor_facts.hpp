// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The identity of a GPU, as texts; empty for the CPU.
struct processor_facts {
  std::string kind; ///< GPUs of one kind compute the same bits.
  std::string name; ///< Unique among the GPUs of all machines.
};

/// The libraries that a GPU uses for bf16. Each text is a name with a version, or the
/// reason why kernels of this program are used. `epilogues` may name several epilogues
/// that kernels compute, separated by "; "; the library then computes the others. Texts
/// are empty before the first stream for bf16 on the GPU, and for the CPU.
struct gpu_libraries {
  std::string epilogues; ///< Of products: cuBLASLt.
  std::string attention; ///< cuDNN.
};

} // namespace troupe
