// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

// Sums of the bits that this process computes on its CPU. They depend on the processor,
// on the compiler and its options, and on the C library; processes of one run need the
// same.

/// XXH3 of the values that a small network begins with, in hexadecimal digits.
std::string sum_of_first_values();

/// XXH3 of the parameters of a small network behind two steps of training.
std::string sum_of_small_training();

} // namespace troupe
