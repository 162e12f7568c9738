// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// What --version prints: the version; this processor and its instructions for bf16;
/// the compiler and how it was called; the libraries that were found at build time;
/// GPUs.
std::string build_info();

} // namespace troupe
