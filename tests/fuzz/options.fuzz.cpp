// SPDX-License-Identifier: BSD-3-Clause
// Any text, as the options of a run that a lead sends: tests/fuzz/run.

#include "tests/fuzz/options.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::take_options({data, size});
  return 0;
}
