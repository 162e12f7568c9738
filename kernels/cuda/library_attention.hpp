// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/attention.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace troupe::cuda {

/// Whether a stream may give an attention to cuDNN (stream::attention_forward()). Three
/// conditions: All arrays are bf16 and not transposed, with rows at multiples of 16
/// bytes. Heads have at most 128 columns, a multiple of 8. Sequences have two tokens or
/// more.
inline bool
library_can_attend(const attention_shape& dims,
                   std::initializer_list<stored_matrix<const float>> arrays) {
  const auto size = dims.width / dims.heads;
  return size % 8 == 0 && size <= 128 && dims.length >= 2
         && std::ranges::all_of(arrays, [](const auto& array) {
              return array.is_bf16 && !array.transposed && array.stride % 8 == 0
                     && reinterpret_cast<std::uintptr_t>(array.data) % 16 == 0;
            });
}

} // namespace troupe::cuda
