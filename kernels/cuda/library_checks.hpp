// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/processor_facts.hpp"

#include <string>

// Comparisons of a GPU's libraries with kernels of this program.

namespace troupe::cuda {

class stream;

/// Lets cuDNN compute the attention of a stream where stream::attention_forward() and
/// attention_backward() can. The first call that loads cuDNN for a GPU in this process
/// compares cuDNN with the kernels of kernels/attention.cu. Outputs, log sums and the
/// three gradients of a small attention must agree within 1e-2 in relative norm.
/// TROUPE_CUDNN=off leaves cuDNN out. A comparison waits for the stream. Safe to call
/// from several threads, for different streams.
///
/// Returns one sentence that says why kernels of this program compute all attention;
/// empty if cuDNN is used.
/// \pre no launch of the stream is deferred
/// \throws std::runtime_error if kernels of this program fail
std::string use_attention_library(stream& gpu_stream);

/// Lets cuBLASLt finish the products of a stream where stream::is_available(). The
/// first call for a GPU in this process compares all epilogues (compare_epilogues()),
/// and waits for the stream. Each call accepts the epilogues that agreed.
/// TROUPE_EPILOGUES=off leaves the epilogues out. Safe to call from several threads,
/// for different streams.
///
/// Returns a sentence for each epilogue that is not used, or one sentence for all;
/// empty if all are used.
/// \pre no launch of the stream is deferred
/// \throws std::runtime_error if kernels of this program fail
std::string use_library_epilogues(stream& gpu_stream);

/// The last outcomes of both functions for a GPU; empty texts before the first call.
/// Safe to call from several threads.
gpu_libraries libraries_of(int gpu);

} // namespace troupe::cuda
