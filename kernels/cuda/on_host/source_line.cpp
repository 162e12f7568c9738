// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/source_line.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <memory>

namespace troupe::on_host {

// Runs addr2line, which comes with the compiler.
std::string source_line(const void* code) {
  char text[512];
  Dl_info symbol{};
  if (dladdr(code, &symbol) == 0 || symbol.dli_fname == nullptr)
    return "an address of no file";
  // A return address is behind the call.
  const auto offset = reinterpret_cast<std::uintptr_t>(code)
                      - reinterpret_cast<std::uintptr_t>(symbol.dli_fbase) - 1;
  std::snprintf(text, sizeof text, "addr2line -s -e '%s' 0x%lx 2>/dev/null",
                symbol.dli_fname, static_cast<unsigned long>(offset));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> tool{popen(text, "r"), pclose};
  if (!tool || std::fgets(text, sizeof text, tool.get()) == nullptr)
    std::snprintf(text, sizeof text, "%s+0x%lx", symbol.dli_fname,
                  static_cast<unsigned long>(offset));
  std::string line = text;
  return line.substr(0, line.find_first_of(" \n"));
}

} // namespace troupe::on_host
