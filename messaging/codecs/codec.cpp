// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/codecs/codec.hpp"

#include "kernels/arrays.hpp"
#include "kernels/bf16.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

class fp32_values final : public codec {
public:
  void encode(float* values, std::int64_t n, float* payload,
              std::int64_t first) override {
    arrays<float>::copy(values, n, payload + first);
  }
  void decode(const float* payload, std::int64_t first, std::int64_t n,
              float* to) const override {
    arrays<float>::copy(payload + first, n, to);
  }
  void add(const float* payload, std::int64_t first, std::int64_t n,
           float* to) const override {
    arrays<float>::add(payload + first, n, to);
  }
  float coded(float value) const override { return value; }
};

/// Values rounded to the nearest bf16, two in four bytes.
class bf16_values final : public codec {
public:
  void encode(float* values, std::int64_t n, float* payload,
              std::int64_t first) override {
    auto* const to = reinterpret_cast<bf16*>(payload) + first;
    round_row(values, n, to);
    widen_row(to, n, values);
  }
  void decode(const float* payload, std::int64_t first, std::int64_t n,
              float* to) const override {
    widen_row(reinterpret_cast<const bf16*>(payload) + first, n, to);
  }
  void add(const float* payload, std::int64_t first, std::int64_t n,
           float* to) const override {
    const auto* const from = reinterpret_cast<const bf16*>(payload) + first;
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = rounded_to_bf16(to[i]) + fp32_of(from[i].bits);
  }
  float coded(float value) const override { return rounded_to_bf16(value); }
};

constexpr std::array entries{
  codec_entry{
    "none", "fp32, four bytes a value", [](std::int64_t n) { return 4 * n; },
    []() -> std::unique_ptr<codec> { return std::make_unique<fp32_values>(); }},
  codec_entry{
    "bf16", "rounded to bf16, two bytes a value",
    [](std::int64_t n) { return (2 * n + 3) / 4 * 4; },
    []() -> std::unique_ptr<codec> { return std::make_unique<bf16_values>(); }}};

} // namespace

std::span<const codec_entry> codec_catalog() {
  return entries;
}

const codec_entry& fp32_codec() {
  return entries.front();
}

const codec_entry* find_codec(std::string_view name) {
  const auto* const match = std::ranges::find(entries, name, &codec_entry::name);
  return match != entries.end() ? &*match : nullptr;
}

std::string codec_names() {
  std::string result;
  for (const auto& entry : entries)
    result += (result.empty() ? "" : ", ") + std::string{entry.name};
  return result;
}

} // namespace troupe
