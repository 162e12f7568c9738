// SPDX-License-Identifier: BSD-3-Clause
// Tensor shards of a network: together the shards compute the same as the whole
// network.

#include "models/slice.hpp"
#include "models/weights.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::tensor_shards_test {

using Catch::Matchers::ContainsSubstring;

namespace {

const model_options sizes{
  .layers = 2, .width = 24, .heads = 12, .length = 12, .words = 13};
constexpr std::int64_t samples = 3;

/// One stage of one shard, with separate memory.
struct member {
  member(const network<float>& whole, int first, int last, stream& on)
    : layers(whole, first, last, 1) {
    const auto s = layers.sizes(samples);
    stash.resize(static_cast<std::size_t>(s.stash));
    scratch.resize(static_cast<std::size_t>(s.scratch));
    kept.resize(static_cast<std::size_t>(s.kept));
    for (const auto& l : layers.layers()) {
      parameters.emplace_back(static_cast<std::size_t>(l->bucket()));
      gradients.emplace_back(static_cast<std::size_t>(l->bucket()));
    }
    p->samples = samples;
    p->stash = stash.data();
    p->scratch = scratch.data();
    p->kept = kept.data();
    p->compute_stream = &on;
    for (const auto& bucket : parameters)
      p->parameters.emplace_back(bucket.data());
    p->gradients = writable(gradients);
  }

  slice<float> layers;
  std::vector<float> stash, scratch, kept;
  std::vector<std::vector<float>> parameters, gradients;
  std::shared_ptr<pass<float>> p = std::make_shared<pass<float>>();
  loss_sum loss;
};

/// Writes a collective's result to shard t: the whole array, but of a scatter only the
/// shard's chunk, and NaN elsewhere.
void give(const std::vector<float>& together, std::int64_t t, std::int64_t count,
          const shard_collective<float>& to) {
  std::ranges::copy(together, to.array);
  if (to.operation == shard_collective<float>::kind::scatter)
    for (std::int64_t i = 0; i < to.values; ++i)
      if (i * count / to.values != t)
        to.array[i] = std::numeric_limits<float>::quiet_NaN();
}

/// Runs the same pass of all shards, piece by piece, with the collectives in between.
void run(const std::vector<pass_pieces<float>>& all) {
  for (std::size_t piece = 0; piece < all.front().size(); ++piece) {
    for (const auto& one : all)
      one[piece].run();
    const auto& first = all.front()[piece].collective;
    if (first.operation == shard_collective<float>::kind::none)
      continue;
    std::vector<float> together(static_cast<std::size_t>(first.values));
    const auto count = static_cast<std::int64_t>(all.size());
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t i = 0; i < first.values; ++i) {
        const auto value = all[static_cast<std::size_t>(t)][piece].collective.array[i];
        if (first.operation != shard_collective<float>::kind::gather
            || i * count / first.values == t)
          together[static_cast<std::size_t>(i)] += value;
      }
    for (std::int64_t t = 0; t < count; ++t)
      give(together, t, count, all[static_cast<std::size_t>(t)][piece].collective);
  }
}

/// Tokens or labels as (B, T), or as (T, B).
std::vector<std::int32_t> numbers(int factor, int first, bool by_position) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(samples * sizes.length));
  for (std::int64_t b = 0; b < samples; ++b)
    for (std::int64_t t = 0; t < sizes.length; ++t) {
      const auto at = by_position ? t * samples + b : b * sizes.length + t;
      const auto number = (b * sizes.length + t) * factor + first;
      result[static_cast<std::size_t>(at)] =
        static_cast<std::int32_t>(number % sizes.words);
    }
  return result;
}

struct outcome {
  double loss;
  std::int64_t correct;
  std::vector<std::vector<float>> gradients; // one array a layer of the whole network
};

/// Forwards and backwards of the network by a number of shards, in two stages. The same
/// microbatch runs twice, and must count twice.
outcome train(int shards, bool split_backward, bool by_sequence = false,
              precision stored = precision::fp32) {
  stream on{1, stored};
  auto all_sizes = sizes;
  all_sizes.stored = stored;
  const auto whole = *make_network<float>(all_sizes);
  const auto parts = shards == 1 ? std::vector{whole}
                                 : *make_shards<float>(all_sizes, shards, by_sequence);
  const auto weights = initial_weights(whole, 7);
  const auto tokens = numbers(5, 0, by_sequence), labels = numbers(3, 1, by_sequence);
  const auto values =
    static_cast<std::size_t>(samples * parts.front().layers.front()->output());
  const int layers = static_cast<int>(whole.layers.size()), middle = 3;
  std::vector<std::vector<float>> up(parts.size(), std::vector<float>(values)),
    down(up);
  std::vector<member> low, high;
  for (std::size_t t = 0; t < parts.size(); ++t) {
    auto& a = low.emplace_back(parts[t], 0, middle, on);
    auto& b = high.emplace_back(parts[t], middle, layers, on);
    for (int l = 0; l < layers; ++l) {
      std::vector<float> bucket(
        static_cast<std::size_t>(whole.layers[static_cast<std::size_t>(l)]->bucket()));
      weights(static_cast<std::size_t>(l), bucket.data());
      auto& mine = l < middle ? a.parameters[static_cast<std::size_t>(l)]
                              : b.parameters[static_cast<std::size_t>(l - middle)];
      extract_shard(*whole.layers[static_cast<std::size_t>(l)],
                    *parts[t].layers[static_cast<std::size_t>(l)], bucket.data(),
                    mine.data());
    }
    a.p->tokens = tokens.data();
    a.p->output = up[t].data();
    a.p->output_gradient = down[t].data();
    b.p->input = up[t].data();
    b.p->input_gradient = down[t].data();
    b.p->labels = labels.data();
  }
  const auto all = [](std::vector<member>& stage, const auto& pieces_of) {
    std::vector<pass_pieces<float>> result;
    for (auto& m : stage)
      result.push_back(pieces_of(m));
    run(result);
  };
  for (const bool last : {false, true}) {
    for (auto* stage : {&low, &high})
      all(*stage,
          [](member& m) { return m.layers.forward_pieces(m.p, m.loss, false); });
    for (auto* stage : {&high, &low}) {
      for (auto& m : *stage) {
        m.p->beta = last ? 1 : 0;
        m.p->completes = last;
      }
      if (!split_backward) {
        all(*stage, [](member& m) { return m.layers.backward_pieces(m.p, false); });
        continue;
      }
      all(*stage, [](member& m) { return m.layers.input_gradient_pieces(m.p, false); });
      all(*stage,
          [](member& m) { return m.layers.weight_gradient_pieces(m.p, false); });
    }
  }
  outcome result{high[0].loss.loss, high[0].loss.correct, {}};
  for (int l = 0; l < layers; ++l) {
    const auto i = static_cast<std::size_t>(l);
    auto& bucket = result.gradients.emplace_back(
      static_cast<std::size_t>(whole.layers[i]->bucket()));
    for (std::size_t t = 0; t < parts.size(); ++t)
      insert_shard(*whole.layers[i], *parts[t].layers[i],
                   (l < middle
                      ? low[t].gradients[i]
                      : high[t].gradients[i - static_cast<std::size_t>(middle)])
                     .data(),
                   bucket.data());
  }
  return result;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double apart = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(apart / norm);
}

} // namespace

TEST_CASE("tensor shards lose and learn what the whole network does", "[tensor]") {
  const int shards = GENERATE(2, 3, 4, 6);
  const bool split_backward = GENERATE(false, true);
  const bool by_sequence = GENERATE(false, true);
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto whole = train(1, split_backward, false, stored),
             sharded = train(shards, split_backward, by_sequence, stored);
  // A sum in another order may be rounded to the neighbouring value.
  const double most = stored == precision::fp32 ? 1e-5 : 1e-3;
  CHECK(std::abs(sharded.loss - whole.loss) < most * whole.loss);
  CHECK(sharded.correct == whole.correct);
  for (std::size_t l = 0; l < whole.gradients.size(); ++l) {
    INFO("layer " << l);
    CHECK(distance(sharded.gradients[l], whole.gradients[l]) < most);
  }
}

TEST_CASE("by sequence shards keep and send their positions alone", "[tensor]") {
  const auto whole = *make_network<float>(sizes),
             alike = make_shards<float>(sizes, 4)->front(),
             shared = make_shards<float>(sizes, 4, true)->front();
  const int last = static_cast<int>(whole.layers.size());
  const auto of_middle = [&](const network<float>& n) {
    return slice<float>{n, 1, last - 1, 1}.sizes(samples);
  };
  CHECK(of_middle(alike).output == of_middle(whole).output);
  CHECK(of_middle(shared).output == of_middle(whole).output / 4);
  CHECK(of_middle(alike).stash > of_middle(shared).stash * 3 / 2);
  CHECK(of_middle(shared).stash <= of_middle(whole).stash / 4 + 16 * 12 * last);
}

TEST_CASE("a shard's parts go back where they came from", "[tensor]") {
  const auto whole = *make_network<float>(sizes);
  const auto parts = *make_shards<float>(sizes, 4);
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    std::vector<float> bucket(static_cast<std::size_t>(whole.layers[l]->bucket()));
    initial_weights(whole, 1)(l, bucket.data());
    std::vector<float> again(bucket.size());
    for (const auto& part : parts) {
      std::vector<float> some(static_cast<std::size_t>(part.layers[l]->bucket()));
      extract_shard(*whole.layers[l], *part.layers[l], bucket.data(), some.data());
      insert_shard(*whole.layers[l], *part.layers[l], some.data(), again.data());
    }
    CHECK((again == bucket));
  }
}

TEST_CASE("parts of a divided dimension are whole units of each block", "[tensor]") {
  // Queries, keys and values of three heads of two values, and a bias of such columns.
  const parameter whole{"c_attn", {2, 18}, beginning::zeros};
  const parameter bias{"c_attn.bias", {18}, beginning::zeros};
  const divided_dimension heads{"heads", 1, 2, 3};
  for (int s = 0; s < 3; ++s) {
    const auto part = part_of(whole, heads, {.index = s, .count = 3});
    CHECK(part.dims == std::vector<std::int64_t>{2, 6});
    REQUIRE(part.cut);
    CHECK(part.cut->reserved_values == 12);
    std::vector<std::int64_t> columns;
    for (const auto& [begin, end] : part.cut->columns) {
      columns.push_back(begin);
      CHECK(end == begin + 2);
    }
    CHECK(columns == std::vector<std::int64_t>{2 * s, 6 + 2 * s, 12 + 2 * s});
    CHECK(part_of(bias, {"heads", 0, 2, 3}, {.index = s, .count = 3}).dims
          == std::vector<std::int64_t>{6});
  }
  // Five words over two shards: two and three. Both reserve three rows.
  const parameter words{"wte", {5, 4}, beginning::zeros};
  const auto low = part_of(words, {"words", 0}, {.index = 0, .count = 2}),
             high = part_of(words, {"words", 0}, {.index = 1, .count = 2});
  CHECK(low.dims.front() == 2);
  CHECK(high.dims.front() == 3);
  CHECK(high.cut->rows.begin == 2);
  CHECK(low.cut->reserved_values == 12);
  CHECK(high.cut->reserved_values == 12);
  // Three units of two rows over two shards: one and two.
  const parameter rows{"c_proj", {6, 4}, beginning::zeros};
  const auto first = part_of(rows, {"heads", 0, 2}, {.index = 0, .count = 2});
  CHECK(first.cut->rows.end == 2);
  CHECK(first.cut->reserved_values == 16);
  const auto alone = part_of(words, {"words", 0}, {});
  CHECK_FALSE(alone.cut);
  REQUIRE(alone.divided);
  CHECK(alone.divided->name == "words");
}

TEST_CASE("networks that cannot be cut into shards say why", "[tensor]") {
  CHECK_THAT(make_shards<float>({.width = 20, .heads = 5}, 2).error(),
             ContainsSubstring("--heads 5 is no multiple of tensor=2"));
  CHECK_THAT(make_shards<float>({.model = "lenet"}, 2).error(),
             ContainsSubstring("only the layers of gpt"));
  CHECK_THAT(make_shards<float>({.heads = 4, .words = 3}, 4).error(),
             ContainsSubstring("--vocab 3"));
  CHECK(make_shards<float>({.heads = 4, .length = 6}, 4).has_value());
  CHECK_THAT(make_shards<float>({.heads = 4, .length = 6}, 4, true).error(),
             ContainsSubstring("--seq 6 is no multiple of tensor=4"));
}

} // namespace troupe::tensor_shards_test
