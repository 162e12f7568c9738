// SPDX-License-Identifier: BSD-3-Clause
#include "models/check_layer.hpp"

#include "models/short_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

constexpr float poison = std::numeric_limits<float>::quiet_NaN();

/// The sentence about a difference, thrown to end the check.
struct difference : std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size()
         && (a.empty()
             || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

user_layer::buffer_sizes checked(user_layer::buffer_sizes sizes) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (std::min({sizes.saved, sizes.kept, sizes.scratch}) < 0
      || std::max({sizes.saved, sizes.kept, sizes.scratch}) > most)
    throw difference("buffers_for returns a negative number of values, or more than "
                     "2^40");
  return sizes;
}

/// An array between two margins that no pass may write.
class guarded {
public:
  guarded(std::string name, std::int64_t values, float value)
    : name_(std::move(name)),
      values_(static_cast<std::size_t>(values) + 2 * margin, mark) {
    fill(value);
  }

  float* data() { return values_.data() + margin; }
  std::size_t size() const { return values_.size() - 2 * margin; }
  std::vector<float> copy() const {
    return {values_.begin() + margin, values_.end() - margin};
  }
  void fill(float value) {
    std::fill(values_.begin() + margin, values_.end() - margin, value);
  }

  /// \throws difference if a margin has been written
  void check_margins(const std::string& pass) const {
    for (std::size_t i = 0; i < margin; ++i)
      if (values_[i] != mark || values_[values_.size() - 1 - i] != mark)
        throw difference("the " + pass + " writes outside of " + name_);
  }

  /// \throws difference if a value still has the poison of fill()
  void check_written(const std::string& pass) const {
    for (std::size_t i = 0; i < size(); ++i)
      if (!std::isfinite(values_[margin + i]))
        throw difference("the " + pass + " leaves value " + std::to_string(i) + " of "
                         + name_ + " unwritten, or makes it infinite or a NaN");
  }

private:
  static constexpr std::size_t margin = 16;
  static constexpr float mark = -7.25e18F;

  std::string name_;
  std::vector<float> values_;
};

/// One microbatch of the checked layer, and the passes over the microbatch.
class microbatch {
public:
  microbatch(const user_layer& layer, std::int64_t samples, const layer_check& how,
             std::vector<std::vector<float>>& parameters, std::mt19937_64& random)
    : layer_(layer),
      samples_(samples),
      parameters_(parameters),
      sizes_(checked(layer.buffers_for(samples))),
      y_("y", samples * layer.outputs(), poison),
      dx_("dx", samples * layer.inputs(), poison),
      saved_("saved", sizes_.saved, poison),
      kept_("kept", sizes_.kept, poison) {
    std::normal_distribution<float> normal;
    if (how.words == 0)
      for (std::int64_t i = 0; i < samples * layer.inputs(); ++i)
        x_.push_back(normal(random));
    else
      for (std::int64_t i = 0; i < samples * layer.inputs(); ++i)
        tokens_.push_back(static_cast<std::int32_t>(random() % how.words));
    for (std::int64_t i = 0; i < samples * layer.outputs(); ++i)
      dy_.push_back(normal(random));
    for (const auto& tensor : layer.parameters())
      gradients_.emplace_back("the gradient of '" + tensor.name + "'",
                              std::accumulate(tensor.dims.begin(), tensor.dims.end(),
                                              std::int64_t{1}, std::multiplies{}),
                              poison);
  }

  std::vector<float>& x() { return x_; }
  std::vector<guarded>& gradients() { return gradients_; }
  std::vector<float> dx() const { return dx_.copy(); }
  std::vector<float> y() const { return y_.copy(); }

  void forward() {
    y_.fill(poison);
    saved_.fill(poison);
    run("forward", [&](const user_pass& pass) { layer_.forward(pass); });
    y_.check_margins("forward");
    y_.check_written("forward");
  }

  void input_gradient(bool has_dx = true) {
    const std::string name = "input gradient";
    const bool writes = has_dx && tokens_.empty();
    dx_.fill(poison);
    kept_.fill(poison);
    run(name, [&](user_pass pass) {
      forget_output(pass);
      pass.dx = writes ? dx_.data() : nullptr;
      layer_.input_gradient(pass);
    });
    dx_.check_margins(name);
    if (writes)
      dx_.check_written(name);
  }

  /// \param to arrays of all parameters
  void weight_gradient(bool adds, std::vector<guarded>& to) {
    const std::string name = "weight gradient";
    run(name, [&](user_pass pass) {
      forget_output(pass);
      for (auto& gradient : to)
        pass.gradients.push_back(gradient.data());
      pass.adds = adds;
      layer_.weight_gradient(pass);
    });
    for (const auto& gradient : to) {
      gradient.check_margins(name);
      gradient.check_written(name);
    }
  }

  /// The sum of y times dy, in double.
  double loss() {
    forward();
    const auto outputs = y_.copy();
    double sum = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      sum += static_cast<double>(outputs[i]) * static_cast<double>(dy_[i]);
    return sum;
  }

private:
  /// Replaces the output of the forward, which a run uses again before the backward.
  void forget_output(user_pass& pass) {
    forgotten_y_.assign(dy_.size(), poison);
    pass.y = forgotten_y_.data();
  }

  /// Runs a pass whose scratch is poisoned. \throws difference if the pass throws, or
  /// changes an input
  template <class Pass>
  void run(const std::string& name, const Pass& pass) {
    guarded scratch{"scratch", sizes_.scratch, poison};
    user_pass facts{.samples = samples_,
                    .threads = 1,
                    .x = tokens_.empty() ? x_.data() : nullptr,
                    .tokens = tokens_.empty() ? nullptr : tokens_.data(),
                    .y = y_.data(),
                    .dy = dy_.data(),
                    .dx = nullptr,
                    .saved = saved_.data(),
                    .kept = kept_.data(),
                    .scratch = scratch.data(),
                    .parameters = {},
                    .gradients = {},
                    .adds = false};
    for (const auto& tensor : parameters_)
      facts.parameters.push_back(tensor.data());
    const auto x = x_, dy = dy_;
    const auto tokens = tokens_;
    const auto parameters = parameters_;
    try {
      pass(facts);
    } catch (const std::exception& error) {
      throw difference("the " + name + " throws: " + error.what());
    }
    for (const auto* array : {&scratch, &saved_, &kept_})
      array->check_margins(name);
    if (!same_bits(x, x_))
      throw difference("the " + name + " changes x");
    if (tokens != tokens_)
      throw difference("the " + name + " changes the tokens");
    if (!same_bits(dy, dy_))
      throw difference("the " + name + " changes dy");
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (!same_bits(parameters[i], parameters_[i]))
        throw difference("the " + name + " changes parameter '"
                         + layer_.parameters()[i].name + "'");
  }

  const user_layer& layer_;
  std::int64_t samples_;
  std::vector<std::vector<float>>& parameters_; // of all microbatches
  user_layer::buffer_sizes sizes_;
  std::vector<float> x_, dy_;
  std::vector<std::int32_t> tokens_;
  std::vector<float> forgotten_y_; // in place of the forward's
  guarded y_, dx_, saved_, kept_;
  std::vector<guarded> gradients_;
};

/// The checks of one layer, in order. Each throws `difference`.
class layer_checks {
public:
  layer_checks(const user_layer& layer, const layer_check& how)
    : layer_(layer), how_(how), random_(how.seed) {
    std::uniform_real_distribution<float> uniform{-0.7F, 0.7F};
    for (const auto& tensor : layer.parameters()) {
      auto& values = parameters_.emplace_back();
      const auto count = std::accumulate(tensor.dims.begin(), tensor.dims.end(),
                                         std::int64_t{1}, std::multiplies{});
      for (std::int64_t i = 0; i < count; ++i)
        values.push_back(uniform(random_));
    }
  }

  void run() {
    for (const auto samples : {std::int64_t{1}, how_.samples}) {
      auto part = make(samples);
      check_repeated_forward(part);
      check_gradients(part);
      check_addition(part);
      check_without_dx(part);
    }
    check_interleaving();
  }

private:
  microbatch make(std::int64_t samples) {
    return {layer_, samples, how_, parameters_, random_};
  }

  void check_repeated_forward(microbatch& part) {
    part.forward();
    const auto first = part.y();
    part.forward();
    if (!same_bits(first, part.y()))
      throw difference("two forwards of the same input have different bits");
  }

  void check_gradients(microbatch& part) {
    part.forward();
    part.input_gradient();
    part.weight_gradient(false, part.gradients());
    if (how_.words == 0)
      compare("dx", part.dx(), part.x(), part);
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      compare("the gradient of '" + layer_.parameters()[i].name + "'",
              part.gradients()[i].copy(), parameters_[i], part);
  }

  /// Compares gradients with finite differences of the loss by the values.
  void compare(const std::string& name, const std::vector<float>& gradient,
               std::vector<float>& values, microbatch& part) {
    std::vector<std::size_t> drawn(values.size());
    std::iota(drawn.begin(), drawn.end(), std::size_t{0});
    std::ranges::shuffle(drawn, random_);
    drawn.resize(std::min(drawn.size(), static_cast<std::size_t>(how_.most_values)));
    std::ranges::sort(drawn);
    constexpr float near = 0x1p-7F, far = 0x1p-6F;
    struct measured {
      std::size_t index;
      double narrow, wide, left, right; // slopes
    };
    std::vector<measured> slopes;
    double scale = 1e-3;
    for (const auto i : drawn) {
      const float middle = values[i];
      const auto moved = [&](float step) {
        values[i] = middle + step;
        const std::pair result{static_cast<double>(values[i]), part.loss()};
        values[i] = middle;
        return result;
      };
      const auto slope = [](const auto& a, const auto& b) {
        return (b.second - a.second) / (b.first - a.first);
      };
      const auto here = moved(0), left = moved(-near), right = moved(near);
      slopes.push_back({i, slope(left, right), slope(moved(-far), moved(far)),
                        slope(left, here), slope(here, right)});
      scale = std::max(scale, std::abs(slopes.back().narrow));
    }
    std::size_t compared = 0;
    for (const auto& s : slopes) {
      // At a kink, slopes differ with the distance or with the side.
      if (std::abs(s.wide - s.narrow) > how_.tolerance / 2 * scale
          || std::abs(s.left - s.right) > scale / 10)
        continue;
      ++compared;
      const auto found = static_cast<double>(gradient[s.index]);
      if (!(std::abs(found - s.narrow) <= how_.tolerance * scale))
        throw difference(name + " has " + short_text(found) + " at value "
                         + std::to_string(s.index) + ", and finite differences give "
                         + short_text(s.narrow));
    }
    if (2 * compared < drawn.size())
      throw difference("the forward is not smooth enough for finite differences: only "
                       + std::to_string(compared) + " of "
                       + std::to_string(drawn.size()) + " values of " + name
                       + " could be compared");
  }

  void check_addition(microbatch& part) {
    auto sums = part.gradients();
    for (auto& sum : sums)
      sum.fill(1);
    part.forward();
    part.input_gradient();
    part.weight_gradient(true, sums);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto with = sums[i].copy(), without = part.gradients()[i].copy();
      for (std::size_t k = 0; k < with.size(); ++k)
        if (std::abs(with[k] - (1 + without[k])) > 1e-4F * (1 + std::abs(without[k])))
          throw difference("with `adds`, the weight gradient makes "
                           + short_text(static_cast<double>(with[k]))
                           + " of 1 at value " + std::to_string(k)
                           + " of the gradient of '" + layer_.parameters()[i].name
                           + "', and 1 plus the gradient is "
                           + short_text(static_cast<double>(1 + without[k])));
    }
  }

  void check_without_dx(microbatch& part) {
    auto others = part.gradients();
    for (auto& gradient : others)
      gradient.fill(poison);
    part.forward();
    part.input_gradient(false);
    part.weight_gradient(false, others);
    for (std::size_t i = 0; i < others.size(); ++i)
      if (!same_bits(others[i].copy(), part.gradients()[i].copy()))
        throw difference("the gradient of '" + layer_.parameters()[i].name
                         + "' is another one behind an input gradient without dx");
  }

  void check_interleaving() {
    auto a = make(how_.samples), b = make(1);
    const auto sums = [&] {
      auto result = a.gradients();
      for (auto& gradient : result)
        gradient.fill(poison);
      return result;
    };
    auto alone = sums();
    for (auto* part : {&a, &b}) {
      part->forward();
      part->input_gradient();
      part->weight_gradient(part == &b, alone);
    }
    const auto dx_a = a.dx(), dx_b = b.dx();
    auto together = sums();
    a.forward();
    b.forward();
    a.input_gradient();
    b.input_gradient();
    a.weight_gradient(false, together);
    b.weight_gradient(true, together);
    if (!same_bits(dx_a, a.dx()) || !same_bits(dx_b, b.dx()))
      throw difference(
        "dx of a microbatch changes with passes of another microbatch in "
        "between");
    for (std::size_t i = 0; i < alone.size(); ++i)
      if (!same_bits(alone[i].copy(), together[i].copy()))
        throw difference("the gradient of '" + layer_.parameters()[i].name
                         + "' over two microbatches changes with passes in between");
  }

  const user_layer& layer_;
  layer_check how_;
  std::mt19937_64 random_;
  std::vector<std::vector<float>> parameters_;
};

} // namespace

std::string check_layer(const user_layer& layer, const layer_check& how) {
  try {
    layer_checks{layer, how}.run();
  } catch (const difference& found) {
    return found.what();
  }
  return {};
}

} // namespace troupe
