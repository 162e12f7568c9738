// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::on_host {

/// The source file and line of an address in this program's code; the address itself
/// where no debug information is found.
std::string source_line(const void* code);

} // namespace troupe::on_host
