// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::on_host {

/// The source file and line of an address of this program's code, or the address where
/// nothing knows it.
std::string source_line(const void* code);

} // namespace troupe::on_host
