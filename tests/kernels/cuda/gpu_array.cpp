// SPDX-License-Identifier: BSD-3-Clause
// Functions that do not depend on the place where kernels run.

#include "tests/kernels/cuda/gpu_array.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace gpu {

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Rows with gaps, as stored in memory.
std::vector<unsigned char> laid_out(const std::vector<float>& values,
                                    const stored_array::size& dims, bool is_bf16) {
  const auto stride = dims.columns + dims.gap;
  const auto value = is_bf16 ? sizeof(troupe::bf16) : sizeof(float);
  std::vector<unsigned char> result(static_cast<std::size_t>(dims.rows * stride)
                                    * value);
  for (std::int64_t r = 0; r < dims.rows; ++r)
    for (std::int64_t c = 0; c < stride; ++c) {
      const bool is_there = c < dims.columns && !values.empty();
      const float v =
        is_there ? values[static_cast<std::size_t>(r * dims.columns + c)] : nan;
      auto* const to = &result[static_cast<std::size_t>(r * stride + c) * value];
      if (is_bf16) {
        const auto bits = troupe::bf16_of(v);
        std::memcpy(to, &bits, sizeof bits);
      } else {
        std::memcpy(to, &v, sizeof v);
      }
    }
  return result;
}

} // namespace

stored_array::stored_array(const std::string& name, const std::vector<float>& values,
                           size dims, troupe::precision stored, use what)
  : dims_(dims),
    is_bf16_(stored == troupe::precision::bf16),
    before_(laid_out(values, dims, is_bf16_)),
    memory_(std::make_unique<memory>(name, before_.data(), std::ssize(before_),
                                     is_bf16_ ? 2 : 4, what)) {
  // nop
}

stored_array::stored_array(const std::string& name, size dims, troupe::precision stored)
  : stored_array(name, {}, dims, stored, use::written) {
  // nop
}

troupe::stored_matrix<float> stored_array::out() const {
  if (is_bf16_)
    return troupe::matrix<troupe::bf16>{static_cast<troupe::bf16*>(memory_->data()),
                                        dims_.rows, dims_.columns, stride()};
  return troupe::matrix<float>{static_cast<float*>(memory_->data()), dims_.rows,
                               dims_.columns, stride()};
}

std::vector<float> stored_array::values() const {
  const auto now = memory_->bytes();
  const std::size_t value = is_bf16_ ? 2 : 4;
  std::vector<float> result;
  for (std::int64_t r = 0; r < dims_.rows; ++r)
    for (std::int64_t c = 0; c < stride(); ++c) {
      const auto at = static_cast<std::size_t>(r * stride() + c) * value;
      if (c >= dims_.columns) {
        if (std::memcmp(&now[at], &before_[at], value) != 0)
          throw std::logic_error{"a kernel wrote between the rows of a matrix"};
        continue;
      }
      float v = 0;
      if (is_bf16_) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, &now[at], sizeof bits);
        v = troupe::fp32_of(bits);
      } else {
        std::memcpy(&v, &now[at], sizeof v);
      }
      result.push_back(v);
    }
  return result;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

std::vector<float> rounded(std::vector<float> values, troupe::precision stored) {
  if (stored == troupe::precision::bf16)
    for (auto& v : values)
      v = troupe::fp32_of(troupe::bf16_of(v));
  return values;
}

} // namespace gpu
