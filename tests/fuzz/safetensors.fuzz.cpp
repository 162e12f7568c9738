// SPDX-License-Identifier: BSD-3-Clause
// Any bytes, as a file of tensors: tests/fuzz/run.

#include "tests/fuzz/safetensors.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::take_safetensors({data, size});
  return 0;
}
