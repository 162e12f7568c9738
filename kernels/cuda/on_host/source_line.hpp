// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::on_host {

/// The source file and line of an address in this program's code, as addr2line prints
/// them: "??:0" without debug information. The program's file and an offset if
/// addr2line cannot run; another text if the address is in no file.
/// \param code a return address: the line is that of the call
std::string source_line(const void* code);

} // namespace troupe::on_host
