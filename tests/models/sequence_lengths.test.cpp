// SPDX-License-Identifier: BSD-3-Clause
// Networks for shorter sequences, and microbatches of different lengths.

#include "models/data/open_data.hpp"
#include "models/data/read_samples.hpp"
#include "models/slices_by_length.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>

namespace troupe::sequence_lengths_test {

namespace {

constexpr std::int64_t longest = 8, samples = 3;

model_options model_of(const std::string& name, std::int64_t length = longest) {
  model_options result{name, 2, 8, 2, length, 11};
  result.experts = {.count = 3, .chosen = 2, .capacity = 0.7};
  return result;
}

using buckets = std::vector<std::vector<float>>;

/// A forward and a backward of a whole network.
struct trained_once {
  loss_sum loss;
  buckets gradients;
};

trained_once train(const network<float>& whole, buckets parameters,
                   const std::vector<std::int32_t>& tokens,
                   const std::vector<std::int32_t>& labels, float beta, float before) {
  const slice<float> layers{whole, 0, static_cast<int>(whole.layers.size()), 1};
  const auto sizes = layers.sizes(samples);
  std::vector<float> stash(static_cast<std::size_t>(sizes.stash)),
    scratch(static_cast<std::size_t>(sizes.scratch));
  trained_once result;
  stream on{1};
  pass<float> p;
  p.samples = samples;
  p.first = 0;
  p.tokens = tokens.data();
  p.labels = labels.data();
  p.stash = stash.data();
  p.scratch = scratch.data();
  p.beta = beta;
  p.compute_stream = &on;
  for (auto& bucket : parameters) {
    p.parameters.emplace_back(bucket.data());
    result.gradients.emplace_back(bucket.size(), before);
  }
  for (auto& bucket : result.gradients)
    p.gradients.push_back(bucket.data());
  layers.forward(p, result.loss);
  layers.backward(p);
  return result;
}

/// The values of a parameter; of a table of positions the first ones alone.
std::vector<float> values_of(const network<float>& of, const buckets& all,
                             std::size_t layer, const parameter& p,
                             std::int64_t count) {
  const auto& own = of.layers[layer]->parameter_called(p.name);
  const auto begin = all[layer].begin() + own.offset;
  return {begin, begin + count};
}

/// A network without the head, in double: the output of the last block for some
/// samples, and the gradients.
class headless_run {
public:
  static constexpr std::int64_t length = 6, count = 4; // of each sample; of samples

  explicit headless_run(const model_options& model)
    : whole_(*make_network<double>(model)), width_(model.width) {
    for (std::size_t l = 0; l < whole_.layers.size() - 1; ++l) {
      parameters_.push_back(
        random_values<double>(whole_.layers[l]->bucket(), static_cast<unsigned>(l)));
      gradients.emplace_back(parameters_.back().size());
    }
  }

  /// Runs `positions` positions of every sample, `size` samples at a time. Only the
  /// first `learned` positions have gradients. \post outputs are (sample, learned, C)
  void run(std::int64_t size, std::int64_t positions, std::int64_t learned) {
    outputs.clear();
    const auto layers = static_cast<int>(parameters_.size());
    const slice<double> part{of_length(whole_, positions), 0, layers, 1};
    for (std::int64_t first = 0; first < count; first += size)
      run(part, first, size, positions, learned);
  }

  std::vector<double> outputs;
  std::vector<std::vector<double>> gradients;

private:
  void run(const slice<double>& part, std::int64_t first, std::int64_t size,
           std::int64_t positions, std::int64_t learned) {
    const auto sizes = part.sizes(size);
    const auto values = size * positions * width_;
    const auto room = [](std::int64_t n) {
      return std::vector<double>(static_cast<std::size_t>(n));
    };
    auto output = room(values), dy = room(values), stash = room(sizes.stash),
         kept = room(sizes.kept), scratch = room(sizes.scratch);
    std::vector<std::int32_t> tokens;
    for (std::int64_t s = first; s < first + size; ++s)
      for (std::int64_t t = 0; t < positions; ++t) {
        tokens.push_back(tokens_[static_cast<std::size_t>(s * length + t)]);
        for (std::int64_t c = 0; c < width_ && t < learned; ++c)
          dy[static_cast<std::size_t>(((s - first) * positions + t) * width_ + c)] =
            dy_[static_cast<std::size_t>((s * length + t) * width_ + c)];
      }
    stream on{1};
    pass<double> p;
    p.samples = size;
    p.first = 100 + first;
    p.tokens = tokens.data();
    p.output = output.data();
    p.stash = stash.data();
    p.output_gradient = dy.data();
    p.kept = kept.data();
    p.scratch = scratch.data();
    p.beta = first > 0 ? 1 : 0;
    p.compute_stream = &on;
    for (std::size_t l = 0; l < parameters_.size(); ++l) {
      p.parameters.push_back(parameters_[l].data());
      p.gradients.push_back(gradients[l].data());
    }
    loss_sum none;
    part.forward(p, none);
    part.backward(p);
    for (std::int64_t s = 0; s < size; ++s) {
      const auto begin = output.begin() + s * positions * width_;
      outputs.insert(outputs.end(), begin, begin + learned * width_);
    }
  }

  network<double> whole_;
  std::int64_t width_;
  std::vector<std::vector<double>> parameters_;
  std::vector<std::int32_t> tokens_ = random_labels(count * length, 11, 3);
  std::vector<double> dy_ = random_values<double>(count * length * width_, 4);
};

} // namespace

// A layer uses `frame::first` only for a value of a sample and the sample's position.
TEST_CASE("a position computes the same in every microbatch and at every length",
          "[lengths]") {
  model_options model{GENERATE("gpt", "moe"), 3, 8, 2, headless_run::length, 11};
  model.experts = {.count = 4, .chosen = 2, .capacity = 8, .balance = 0, .noise = 1};
  headless_run whole{model}, part{model};
  const std::int64_t learned = GENERATE(headless_run::length, 2);
  whole.run(headless_run::count, headless_run::length, learned);
  for (const std::int64_t size : {1, 2, 4})
    for (const auto positions : {learned, headless_run::length}) {
      CAPTURE(model.model, size, positions, learned);
      part.run(size, positions, learned);
      CHECK(relative_difference(part.outputs, whole.outputs) < 1e-12);
      for (std::size_t l = 0; l < part.gradients.size(); ++l)
        CHECK(relative_difference(part.gradients[l], whole.gradients[l]) < 1e-11);
    }
}

TEST_CASE("a network for shorter sequences is one that never had longer ones",
          "[lengths]") {
  const std::string name = GENERATE("gpt", "moe");
  const std::int64_t length = GENERATE(1, 5, 8);
  const float beta = GENERATE(0.0F, 1.0F), before = 2;
  const auto whole = *make_network<float>(model_of(name)),
             shorter = of_length(whole, length),
             never_longer = *make_network<float>(model_of(name, length));
  buckets parameters, own;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    CHECK(shorter.layers[l]->bucket() == whole.layers[l]->bucket());
    parameters.push_back(
      random_values<float>(whole.layers[l]->bucket(), static_cast<unsigned>(l)));
    own.emplace_back(static_cast<std::size_t>(never_longer.layers[l]->bucket()));
    for (const auto& p : never_longer.layers[l]->parameters())
      std::ranges::copy(values_of(whole, parameters, l, p, p.values()),
                        own[l].begin() + p.offset);
  }
  const auto tokens = random_labels(samples * length, 11, 1),
             labels = random_labels(samples * length, 11, 2);
  const auto by_whole = train(shorter, parameters, tokens, labels, beta, before),
             by_own = train(never_longer, own, tokens, labels, beta, before);
  CHECK(by_whole.loss.loss == by_own.loss.loss);
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : never_longer.layers[l]->parameters()) {
      INFO(p.name);
      CHECK(values_of(whole, by_whole.gradients, l, p, p.values())
            == values_of(never_longer, by_own.gradients, l, p, p.values()));
    }
  // The table's rows at positions that no sequence has get no gradient.
  const auto& places = whole.layers[0]->parameter_called("transformer.wpe.weight");
  const auto of_places =
    values_of(whole, by_whole.gradients, 0, places, places.values());
  for (auto i = static_cast<std::size_t>(length * 8); i < of_places.size(); ++i)
    CHECK(of_places[i] == beta * before);
}

TEST_CASE("of a sample a shorter sequence has the first tokens and labels",
          "[lengths]") {
  const auto model = model_of("gpt");
  const auto whole = *make_network<float>(model);
  const auto data = *open_data("synthetic", model, 3);
  std::vector<std::int32_t> all(longest), answers(longest), tokens(3 * 2),
    labels(3 * 2);
  read_samples(*data, whole, {7, 2}, 3, {tokens.data(), nullptr, labels.data()});
  for (std::int64_t i = 0; i < 2; ++i) {
    data->training(7 + i, {all.data(), nullptr, answers.data()});
    CHECK(std::equal(all.begin(), all.begin() + 3, tokens.begin() + 3 * i));
    CHECK(std::equal(answers.begin(), answers.begin() + 3, labels.begin() + 3 * i));
  }
}

TEST_CASE("uneven microbatches have the samples of a batch in order", "[lengths]") {
  const batching by{.batch = 9,
                    .microbatches = 4,
                    .preceding_samples = 100,
                    .uneven = std::make_shared<const uneven_microbatches>(
                      uneven_microbatches{.samples = {4, 1, 3, 1}, .lengths = {8, 2}})};
  const std::int64_t first[] = {100, 104, 105, 108, 109, 113, 114, 117, 118};
  for (int k = 0; k < 9; ++k)
    CHECK(by.first_of(k) == first[k]);
  CHECK(by.samples_of(2) == 3);
  CHECK(by.samples_of(5) == 1);
  CHECK(by.length_of(0) == 8);
  CHECK(by.length_of(7) == 2);
  CHECK(by.largest() == 4);
  CHECK(by.shapes() == std::vector<microbatch_shape>{{4, 8}, {1, 2}, {3, 8}});
  CHECK(by.tokens(8) == 4 * 8 + 1 * 2 + 3 * 8 + 1 * 2);
  const batching even{.batch = 9, .microbatches = 4};
  CHECK(even.length_of(3) == 0);
  CHECK(even.tokens(8) == 72);
  CHECK(even.shapes().size() == 2);
}

TEST_CASE("the loss of a sample is a mean, however long it is", "[lengths]") {
  CHECK(of_whole_samples({12, 3}, 8, 0).loss == 12);
  CHECK(of_whole_samples({12, 3}, 8, 8).loss == 12);
  CHECK(of_whole_samples({12, 3}, 8, 2).loss == 48);
}

} // namespace troupe::sequence_lengths_test
