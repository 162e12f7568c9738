// SPDX-License-Identifier: BSD-3-Clause
// Any bytes, as mail from a stranger: tests/fuzz/run.

#include "tests/fuzz/codec.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::is_mail({data, size});
  return 0;
}
