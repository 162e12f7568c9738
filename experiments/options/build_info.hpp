// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The text of --version: lines for the version, for this processor and the path of
/// bf16 products, and for the compiler and flags. Further lines have the version of CAF
/// and the libraries found at build time. The last line has the number of GPUs, or the
/// reason why there are none.
std::string build_info();

} // namespace troupe
