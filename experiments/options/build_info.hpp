// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The text of --version: lines for the version, for this processor and the path of
/// bf16 products, and for the compiler and flags. Further lines list the libraries
/// found at build time, and GPUs.
std::string build_info();

} // namespace troupe
