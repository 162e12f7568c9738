// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/bf16.hpp"

#include "kernels/bf16_vector.hpp"
#include "kernels/vector.hpp"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace troupe {

void round_row(const float* from, std::int64_t n, bf16* to) {
  std::int64_t i = 0;
#ifdef __AVX512BF16__
  for (; i + 32 <= n; i += 32) {
    const auto both =
      _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + 16), _mm512_loadu_ps(from + i));
    std::memcpy(to + i, &both, sizeof both);
  }
#endif
  using values = bf16_vector<lanes>;
  for (; i + lanes <= n; i += lanes)
    values::store(to + i, values::rounded(values::load(from + i)));
  for (; i < n; ++i)
    to[i] = {bf16_of(from[i])};
}

void widen_row(const bf16* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = fp32_of(from[i].bits);
}

} // namespace troupe
