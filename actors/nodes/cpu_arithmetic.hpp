// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

// Checksums of bits that this process computes on the CPU. Such bits depend on the
// processor, on the compiler and its options, and on the C library. All nodes of a run
// must have equal checksums of first values, and all nodes with ranks on the CPU equal
// checksums of the training.

/// XXH3 of a small network's initial values, in hexadecimal digits.
std::string sum_of_first_values();

/// XXH3 of a small network's parameters after training by two updates, in hexadecimal
/// digits.
std::string sum_of_small_training();

} // namespace troupe
