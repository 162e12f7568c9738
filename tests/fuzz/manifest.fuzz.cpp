// SPDX-License-Identifier: BSD-3-Clause
// Any text, as the manifest of a checkpoint: tests/fuzz/run.

#include "tests/fuzz/manifest.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::take_manifest({data, size});
  return 0;
}
