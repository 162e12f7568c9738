// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The text of --version. The first three lines have the version, this processor with
/// the path of its bf16 products, and the compiler with flags. If no path is known, the
/// second line has the reason. Further lines have the version of CAF and the libraries
/// found at build time. The last line has the number of GPUs, or the reason why there
/// are none.
std::string build_info();

} // namespace troupe
