// SPDX-License-Identifier: BSD-3-Clause
// Texts that stages generate, compared with a plain loop. For each token the loop reads
// the whole text again, and keeps nothing.

#include "actors/inference/generation_run.hpp"
#include "models/random.hpp"
#include "tests/actors/inferred.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace troupe::generation_test {

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t context = 12;

model_options gpt() {
  return {"gpt", 4, 16, 2, context, 23};
}

/// First weights that are far apart, so that texts do not repeat a single word again
/// and again.
generation_job job_of(const model_options& model, int stages, int threads = 2) {
  generation_job job{.plan = tiny::inference_of(model, stages, threads),
                     .prompt = {3, 17, 5}};
  job.plan.weights = [first = job.plan.weights, layers = job.plan.whole.layers](
                       std::size_t layer, float* bucket) {
    first(layer, bucket);
    for (const auto& p : layers[layer]->parameters())
      if (p.is_matrix())
        for (std::int64_t i = 0; i < p.values(); ++i)
          bucket[p.offset + i] *= 12;
  };
  return job;
}

/// The logits of the token behind some tokens, in double: every layer reads all tokens.
std::vector<double> plain_logits(const generation_job& job,
                                 std::vector<std::int32_t> tokens) {
  if (std::ssize(tokens) > context)
    tokens.erase(tokens.begin(), tokens.end() - context);
  const auto whole =
    of_length(*make_network<double>(job.plan.whole.options), std::ssize(tokens));
  stream on{1};
  std::vector<double> x;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    const auto& layer = *whole.layers[l];
    std::vector<float> bucket(static_cast<std::size_t>(layer.bucket()));
    job.plan.weights(l, bucket.data());
    const std::vector<double> parameters(bucket.begin(), bucket.end());
    const auto sizes = layer.sizes(1, 1);
    std::vector<double> saved(static_cast<std::size_t>(sizes.saved)),
      scratch(static_cast<std::size_t>(sizes.scratch)),
      y(static_cast<std::size_t>(layer.output()));
    layer.forward({.samples = 1,
                   .tokens = tokens.data(),
                   .x = x.data(),
                   .y = y.data(),
                   .saved = saved.data(),
                   .parameters = {parameters.data()},
                   .scratch = scratch.data(),
                   .compute_stream = &on});
    x = std::move(y);
  }
  return {x.end() - whole.classes, x.end()};
}

std::vector<std::int32_t> plain_text(const generation_job& job) {
  auto text = job.prompt;
  for (std::int64_t i = 0; i < job.tokens; ++i) {
    const auto logits = plain_logits(job, text);
    text.push_back(
      static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin()));
  }
  return text;
}

std::vector<model_options> models() {
  auto tied = gpt(), moe = gpt();
  tied.tied = true;
  moe.model = "moe";
  moe.experts = {.count = 4, .chosen = 2, .shared = true};
  return {gpt(), tied, moe};
}

} // namespace

TEST_CASE("the likeliest text is that of a loop which keeps nothing", "[generation]") {
  for (const auto& model : models()) {
    auto job = job_of(model, 1);
    const int given = GENERATE(1, 3, 12, 15); // 15 are more than the context
    job.prompt.clear();
    for (int i = 0; i < given; ++i)
      job.prompt.push_back((3 + 7 * i) % 23);
    job.tokens = 14; // beyond the context
    job.sampling.temperature = 0;
    const auto want = plain_text(job);
    std::set<std::int32_t> words(want.begin(), want.end());
    INFO(model.model << (model.tied ? ", tied: " : ": ") << words.size());
    CHECK((model.tied || words.size() > 3)); // else the text is too simple
    for (const int stages : {1, 2, 4}) {
      auto cut = job_of(model, stages);
      cut.prompt = job.prompt;
      cut.tokens = job.tokens;
      cut.sampling = job.sampling;
      cut.sequences = 3;
      const auto got = generate(cut);
      INFO(model.model << " in " << stages << " stages: " << got.run.failure);
      REQUIRE(got.run.outcome == ending::finished);
      CHECK(got.sequences == std::vector(3, want));
      CHECK(got.run.late_allocations == 0);
      const auto said = bytes_needed(cut);
      for (std::size_t s = 1; s < said.size(); ++s)
        CHECK(std::abs(said[s] - got.run.bytes[s]) <= 16 * 64);
    }
  }
}

// Compares fp32 with double, through four blocks whose logits are about 10.
TEST_CASE("each token is chosen by the logits of all before it", "[generation]") {
  for (const auto& model : models()) {
    auto job = job_of(model, 3);
    job.tokens = 14;
    job.sequences = 2;
    std::map<int, std::vector<std::int32_t>> texts;
    double apart = 0;
    const auto got = generate(job, [&](const generated_token& next) {
      auto& text = texts.emplace(next.sequence, job.prompt).first->second;
      const auto want = plain_logits(job, text);
      for (std::size_t i = 0; i < want.size(); ++i) // on an actor's thread: no checks
        apart = std::max(apart, std::abs(next.logits[i] - want[i]));
      text.push_back(next.token);
    });
    REQUIRE(got.run.outcome == ending::finished);
    INFO(model.model);
    CHECK(apart < 2e-4);
    CHECK(got.sequences == std::vector{texts[0], texts[1]});
    CHECK(texts[0] != texts[1]);
  }
}

TEST_CASE("a text depends on neither stages, threads nor other texts", "[generation]") {
  const auto write = [](int stages, int threads, int sequences, std::uint64_t seed) {
    auto job = job_of(gpt(), stages, threads);
    job.tokens = 30;
    job.sequences = sequences;
    job.sampling = {1.5, 9};
    job.seed = seed;
    const auto got = generate(job);
    REQUIRE(got.run.outcome == ending::finished);
    return got.sequences;
  };
  const auto want = write(1, 1, 5, 3);
  CHECK(write(3, 2, 5, 3) == want);
  CHECK(write(4, 1, 5, 3) == want);
  CHECK(write(2, 4, 1, 3).front() == want.front());
  CHECK(write(1, 1, 5, 4) != want);
}

// All words are equally likely, as all weights are 0.
TEST_CASE("each token of each text is drawn by a number of its own", "[generation]") {
  auto job = job_of(gpt(), 2);
  job.plan.weights = [layers = job.plan.whole.layers](std::size_t layer,
                                                      float* bucket) {
    std::fill_n(bucket, layers[layer]->bucket(), 0.0F);
  };
  job.tokens = 460; // of 23 words
  job.sequences = 3;
  const auto got = generate(job);
  REQUIRE(got.run.outcome == ending::finished);
  const auto part_equal = [](const auto& a, const auto& b, std::size_t behind) {
    double result = 0;
    for (std::size_t i = behind; i < a.size(); ++i)
      result += a[i] == b[i - behind] ? 1.0 / static_cast<double>(a.size()) : 0;
    return result;
  };
  for (std::size_t s = 0; s < 3; ++s) {
    const std::vector<std::int32_t> text(
      got.sequences[s].begin() + std::ssize(job.prompt), got.sequences[s].end());
    for (int word = 0; word < 23; ++word) {
      INFO("word " << word << " of text " << s);
      CHECK(std::abs(std::ranges::count(text, word) - 20) < 20);
    }
    // One word in 23 is equal to an earlier one, or to one of another text.
    for (const std::size_t behind : {1U, 2U, 11U})
      CHECK(part_equal(text, text, behind) < 0.1);
    const auto& other = got.sequences[(s + 1) % 3];
    CHECK(part_equal(text,
                     std::vector<std::int32_t>(other.begin() + std::ssize(job.prompt),
                                               other.end()),
                     0)
          < 0.1);
  }
}

TEST_CASE("a job that cannot be written is refused in a sentence", "[generation]") {
  auto job = job_of(gpt(), 2);
  CHECK(validation_error(job).empty());
  job.prompt = {3, 23};
  CHECK_THAT(validation_error(job), ContainsSubstring("token 23 at position 1"));
  job.prompt = {-1};
  CHECK_THAT(validation_error(job), ContainsSubstring("vocabulary, 0 to 22"));
  job.prompt.assign(13, 0); // more than the model reads at once
  job.prompt.front() = 23;
  CHECK_THAT(validation_error(job), ContainsSubstring("token 23 at position 0"));
  job.prompt.clear();
  CHECK_THAT(validation_error(job), ContainsSubstring("at least one"));
  job.plan = tiny::inference_of({.model = "lenet"}, 2);
  CHECK_THAT(validation_error(job), ContainsSubstring("not lenet"));
}

TEST_CASE("weights whose logits are not finite end a text with a sentence",
          "[generation]") {
  auto job = job_of(gpt(), 2);
  job.plan.weights = [first = job.plan.weights](std::size_t layer, float* bucket) {
    first(layer, bucket);
    bucket[0] *= 1e38F;
    bucket[1] *= 1e38F;
  };
  job.tokens = 20;
  job.prompt = {0};
  const auto got = generate(job);
  CHECK(got.run.outcome == ending::failed);
  CHECK_THAT(got.run.failure, ContainsSubstring("the logit of token"));
}

TEST_CASE("a text ends when its user wants it, and is told so far", "[generation]") {
  auto job = job_of(gpt(), 2);
  job.tokens = 1'000'000;
  std::atomic<bool> interrupted = false;
  std::size_t told = 0;
  const auto got = generate(
    job, [&](const generated_token&) { interrupted = ++told == 5 || interrupted; },
    &interrupted);
  CHECK(got.run.outcome == ending::interrupted);
  CHECK(got.sequences.front().size() == job.prompt.size() + told);
}

} // namespace troupe::generation_test
