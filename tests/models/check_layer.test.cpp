// SPDX-License-Identifier: BSD-3-Clause
// The check of user layers: right layers pass, and each kind of wrong layer is named.

#include "models/check_layer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <stdexcept>

namespace troupe::check_layer_test {

namespace {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t in = 3, out = 2;

/// The mistakes that a layer may have.
enum class mistake : std::uint8_t {
  none,
  factor,          // the weight gradient is twice as large
  forgets_sum,     // `adds` is not read
  transposed,      // the weight gradient has the order of (in, out)
  dx_of_first,     // dx of each sample is that of the first sample
  unwritten,       // the last output is not written
  outside,         // a value behind y is written
  changes_input,   // x is changed
  state_in_object, // the weight gradient reads the activation of the last forward
  kept_in_scratch, // the weight gradient reads scratch of an earlier pass
  needs_dx,        // the weight gradient is wrong if dx was null
  returns_early,   // an input gradient without dx does nothing
  infinite,        // gradients are infinite
  negative_size,   // a buffer has a negative size
  throws,
  random,  // two forwards differ
  reads_y, // the input gradient reads y, not what the forward saved
};

/// y = tanh(x w^T + b), w (out, in).
class tanh_layer : public user_layer {
public:
  explicit tanh_layer(mistake has)
    : user_layer({{"w", {out, in}}, {"b", {out}}}, in, out), has_(has) {
    // nop
  }

  buffer_sizes buffers_for(std::int64_t samples) const override {
    return {.saved = has_ == mistake::negative_size ? -1 : samples * (in + out),
            .kept = samples * out,
            .scratch = samples * out};
  }
  double operations() const override { return 2 * in * out; }

  void forward(const user_pass& p) const override {
    if (has_ == mistake::throws)
      throw std::runtime_error("no memory left");
    ++forwards_;
    for (std::int64_t s = 0; s < p.samples; ++s)
      for (std::int64_t o = 0; o < out; ++o) {
        float sum = p.parameters[1][o];
        for (std::int64_t i = 0; i < in; ++i)
          sum += p.parameters[0][o * in + i] * p.x[s * in + i];
        if (has_ == mistake::unwritten && s + 1 == p.samples && o + 1 == out)
          continue;
        p.y[s * out + o] = std::tanh(sum);
        if (has_ == mistake::random)
          p.y[s * out + o] += 1e-6F * static_cast<float>(forwards_);
        p.saved[p.samples * in + s * out + o] = std::tanh(sum);
      }
    for (std::int64_t i = 0; i < p.samples * in; ++i) {
      p.saved[i] = p.x[i];
      last_[i % 16] = p.x[i];
    }
    if (has_ == mistake::outside)
      p.y[p.samples * out] = 0;
    if (has_ == mistake::changes_input)
      const_cast<float*>(p.x)[0] = 5;
  }

  void input_gradient(const user_pass& p) const override {
    if (has_ == mistake::returns_early && p.dx == nullptr)
      return;
    const auto* const y = has_ == mistake::reads_y ? p.y : p.saved + p.samples * in;
    for (std::int64_t i = 0; i < p.samples * out; ++i) {
      p.kept[i] = p.dy[i] * (1 - y[i] * y[i]);
      if (has_ == mistake::kept_in_scratch)
        p.scratch[i] = p.kept[i];
      if (has_ == mistake::needs_dx && p.dx == nullptr)
        p.kept[i] = 0;
    }
    for (std::int64_t s = 0; s < p.samples && p.dx != nullptr; ++s)
      for (std::int64_t i = 0; i < in; ++i) {
        float sum = 0;
        for (std::int64_t o = 0; o < out; ++o)
          sum += p.kept[(has_ == mistake::dx_of_first ? 0 : s) * out + o]
                 * p.parameters[0][o * in + i];
        p.dx[s * in + i] = sum;
      }
  }

  void weight_gradient(const user_pass& p) const override {
    const bool adds = p.adds && has_ != mistake::forgets_sum;
    const auto* const kept = has_ == mistake::kept_in_scratch ? p.scratch : p.kept;
    for (std::int64_t o = 0; o < out; ++o) {
      float of_bias = 0;
      for (std::int64_t s = 0; s < p.samples; ++s)
        of_bias += kept[s * out + o];
      p.gradients[1][o] = of_bias + (adds ? p.gradients[1][o] : 0);
      for (std::int64_t i = 0; i < in; ++i) {
        float sum = 0;
        for (std::int64_t s = 0; s < p.samples; ++s)
          sum += kept[s * out + o]
                 * (has_ == mistake::state_in_object ? last_[s * in + i]
                    : p.samples > 1                  ? p.x[s * in + i]
                                                     : p.saved[s * in + i]);
        auto& to =
          p.gradients[0][has_ == mistake::transposed ? i * out + o : o * in + i];
        to = (has_ == mistake::factor ? 2 : 1) * sum + (adds ? to : 0);
        if (has_ == mistake::infinite)
          to = INFINITY;
      }
    }
  }

private:
  mistake has_;
  mutable int forwards_ = 0;
  mutable float last_[16] = {};
};

/// y = a row of a table for each token, (words, out).
class table_layer : public user_layer {
public:
  explicit table_layer(bool shifted)
    : user_layer({{"table", {5, out}}}, 1, out), shifted_(shifted) {
    // nop
  }
  buffer_sizes buffers_for(std::int64_t samples) const override {
    return {.saved = samples};
  }
  double operations() const override { return 0; }
  void forward(const user_pass& p) const override {
    for (std::int64_t i = 0; i < p.samples; ++i)
      p.saved[i] = static_cast<float>(p.tokens[i]);
    for (std::int64_t i = 0; i < p.samples * out; ++i)
      p.y[i] = p.parameters[0][p.tokens[i / out] * out + i % out];
  }
  void input_gradient(const user_pass&) const override {
    // nop
  }
  void weight_gradient(const user_pass& p) const override {
    for (std::int64_t i = 0; i < 5 * out && !p.adds; ++i)
      p.gradients[0][i] = 0;
    for (std::int64_t i = 0; i < p.samples * out; ++i) {
      const auto token = static_cast<std::int64_t>(p.saved[i / out]);
      p.gradients[0][(token + (shifted_ ? 1 : 0)) % 5 * out + i % out] += p.dy[i];
    }
  }

private:
  bool shifted_;
};

/// y = max(x, 0): a kink at 0.
class relu_layer : public user_layer {
public:
  relu_layer() : user_layer({}, 40, 40) {
    // nop
  }
  double operations() const override { return 40; }
  buffer_sizes buffers_for(std::int64_t samples) const override {
    return {.saved = 40 * samples};
  }
  void forward(const user_pass& p) const override {
    for (std::int64_t i = 0; i < p.samples * 40; ++i)
      p.saved[i] = p.y[i] = std::max(p.x[i], 0.0F);
  }
  void input_gradient(const user_pass& p) const override {
    for (std::int64_t i = 0; i < p.samples * 40 && p.dx != nullptr; ++i)
      p.dx[i] = p.saved[i] > 0 ? p.dy[i] : 0;
  }
  void weight_gradient(const user_pass&) const override {
    // nop
  }
};

} // namespace

TEST_CASE("layers whose passes fit together pass the check", "[check_layer]") {
  for (const std::uint64_t seed : {1, 2, 3})
    for (const std::int64_t samples : {1, 2, 5}) {
      CHECK(check_layer(tanh_layer{mistake::none}, {.samples = samples, .seed = seed})
              .empty());
      CHECK(
        check_layer(table_layer{false}, {.samples = samples, .words = 5, .seed = seed})
          .empty());
      CHECK(check_layer(relu_layer{}, {.samples = samples, .seed = seed}).empty());
    }
}

TEST_CASE("the check of a layer names the first difference", "[check_layer]") {
  const std::pair<mistake, const char*> expected[]{
    {mistake::factor, "the gradient of 'w' has "},
    {mistake::forgets_sum, "with `adds`, the weight gradient makes "},
    {mistake::transposed, "the gradient of 'w' has "},
    {mistake::dx_of_first, "dx has "},
    {mistake::unwritten, "the forward leaves value "},
    {mistake::outside, "the forward writes outside of y"},
    {mistake::changes_input, "the forward changes x"},
    {mistake::state_in_object, "the gradient of 'w' over two microbatches"},
    {mistake::kept_in_scratch, "the weight gradient leaves value "},
    {mistake::needs_dx, "behind an input gradient without dx"},
    {mistake::returns_early, "the weight gradient leaves value "},
    {mistake::infinite, "the weight gradient leaves value "},
    {mistake::negative_size, "buffers_for returns a negative"},
    {mistake::throws, "the forward throws: no memory left"},
    {mistake::random, "two forwards of the same input"},
    {mistake::reads_y, "the input gradient leaves value "}};
  for (const auto& [has, sentence] : expected) {
    const auto found = check_layer(tanh_layer{has});
    INFO(static_cast<int>(has));
    CHECK_THAT(found, ContainsSubstring(sentence));
  }
  CHECK_THAT(check_layer(table_layer{true}, {.words = 5}),
             ContainsSubstring("the gradient of 'table' has "));
}

} // namespace troupe::check_layer_test
