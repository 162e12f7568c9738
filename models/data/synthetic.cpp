// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/synthetic.hpp"

#include "models/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace troupe {

namespace {

constexpr std::int64_t held_out = 256; // samples for evaluation

class markov_text : public data_set {
public:
  markov_text(std::int64_t length, std::int64_t words, std::uint64_t seed)
    : length_(length), words_(words), seed_(seed) {
    const auto choices = std::min<std::int64_t>(words, 4);
    for (std::int64_t word = 0; word < words; ++word) {
      const random_stream draws{seed, "successors of " + std::to_string(word)};
      std::vector<std::int32_t> next;
      for (std::uint64_t n = 0; static_cast<std::int64_t>(next.size()) < choices; ++n)
        if (const auto w = static_cast<std::int32_t>(draws.below(n, words));
            std::ranges::find(next, w) == next.end())
          next.push_back(w);
      successors_.push_back(std::move(next));
    }
  }

  std::optional<sample_shape> one_sample() const override {
    return sample_shape{length_, length_, true};
  }

  void training(std::int64_t index, const sample_view& to) const override {
    walk({seed_, "training " + std::to_string(index)}, to);
  }

  std::int64_t evaluation_size() const override { return held_out; }

  void evaluation(std::int64_t index, const sample_view& to) const override {
    walk({seed_, "evaluation " + std::to_string(index)}, to);
  }

  std::optional<double> loss_floor() const override {
    double bits = 0;
    const auto choices = successors_.front().size();
    for (std::size_t c = 0; c < choices; ++c) {
      const double p = std::exp2(-static_cast<double>(std::min(c + 1, choices - 1)));
      bits -= p * std::log2(p);
    }
    return bits * std::numbers::ln2;
  }

  std::optional<data_identity> identity() const override {
    return data_identity{"synthetic text of seed " + std::to_string(seed_) + ", "
                         + std::to_string(length_) + " of " + std::to_string(words_)
                         + " words"};
  }

  std::string description() const override {
    return "synthetic text, a Markov source over " + std::to_string(words_) + " words";
  }

private:
  void walk(const random_stream& draws, const sample_view& to) const {
    auto word = static_cast<std::int32_t>(draws.below(0, words_));
    for (std::int64_t t = 0; t < length_; ++t) {
      to.tokens[t] = word;
      const auto& next = successors_[static_cast<std::size_t>(word)];
      // The number of leading ones is c with probability 2^-(c+1); the last successor
      // takes the rest.
      const auto ones = std::countl_one(draws.bits(static_cast<std::uint64_t>(t) + 1));
      word = next[std::min(static_cast<std::size_t>(ones), next.size() - 1)];
      to.labels[t] = word;
    }
  }

  std::int64_t length_;
  std::int64_t words_;
  std::uint64_t seed_;
  std::vector<std::vector<std::int32_t>> successors_;
};

/// Whether a kind of shape covers a point; coordinates from the shape's centre, in
/// units of the shape's size.
using shape_test = bool (*)(double x, double y);

constexpr std::array<shape_test, 10> shapes{
  [](double x, double y) { return x * x + y * y < 1; },                        // disc
  [](double x, double y) { return x * x + y * y < 1 && x * x + y * y > 0.4; }, // ring
  [](double x, double y) {
    return std::max(std::abs(x), std::abs(y)) < 0.85;
  },                       // square
  [](double x, double y) { // frame
    const double distance = std::max(std::abs(x), std::abs(y));
    return distance < 0.9 && distance > 0.55;
  },
  [](double x, double y) {
    return y > -0.8 && y < 0.8 && std::abs(x) < (y + 0.8) / 1.6;
  },
  [](double x, double y) { return std::abs(y) < 0.25 && std::abs(x) < 1; }, // bar
  [](double x, double y) { return std::abs(x) < 0.25 && std::abs(y) < 1; }, // upright
  [](double x, double y) {                                                  // plus
    return std::min(std::abs(x), std::abs(y)) < 0.22
           && std::max(std::abs(x), std::abs(y)) < 1;
  },
  [](double x, double y) { return std::abs(x - y) < 0.35 && std::abs(x + y) < 1.5; },
  [](double x, double y) { // cross
    return std::min(std::abs(x - y), std::abs(x + y)) < 0.3
           && std::max(std::abs(x), std::abs(y)) < 0.9;
  },
};

class drawn_shapes : public data_set {
public:
  explicit drawn_shapes(std::uint64_t seed) : seed_(seed) {
    // nop
  }

  std::optional<sample_shape> one_sample() const override {
    return sample_shape{28 * 28};
  }

  void training(std::int64_t index, const sample_view& to) const override {
    draw({seed_, "training " + std::to_string(index)}, to);
  }

  std::int64_t evaluation_size() const override { return held_out; }

  void evaluation(std::int64_t index, const sample_view& to) const override {
    draw({seed_, "evaluation " + std::to_string(index)}, to);
  }

  std::optional<data_identity> identity() const override {
    return data_identity{"synthetic images of seed " + std::to_string(seed_)};
  }

  std::string description() const override {
    return "synthetic images, ten kinds of shapes";
  }

private:
  static void draw(const random_stream& draws, const sample_view& to) {
    constexpr int side = 28;
    const auto kind = draws.below(0, static_cast<std::int64_t>(shapes.size()));
    const double size = 5 + 5 * draws.uniform(1);
    const double x0 = 14 + 6 * (draws.uniform(2) - 0.5);
    const double y0 = 14 + 6 * (draws.uniform(3) - 0.5);
    const double ink = 0.6 + 0.4 * draws.uniform(4);
    for (int i = 0; i < side * side; ++i) {
      const double x = (i % side - x0) / size, y = (i / side - y0) / size;
      const auto number = 100 + static_cast<std::uint64_t>(i);
      const bool inside = shapes[static_cast<std::size_t>(kind)](x, y);
      // Outside the shape, noise below 0 is black, as most pixels are.
      const double value = inside ? ink + 0.15 * draws.normal(number)
                                  : 0.15 * draws.normal_above_zero(number);
      to.pixels[i] = static_cast<float>(std::clamp(value, 0.0, 1.0));
    }
    to.labels[0] = static_cast<std::int32_t>(kind);
  }

  std::uint64_t seed_;
};

} // namespace

std::shared_ptr<const data_set> synthetic_text(std::int64_t length, std::int64_t words,
                                               std::uint64_t seed) {
  return std::make_shared<markov_text>(length, words, seed);
}

std::shared_ptr<const data_set> synthetic_images(std::uint64_t seed) {
  return std::make_shared<drawn_shapes>(seed);
}

} // namespace troupe
