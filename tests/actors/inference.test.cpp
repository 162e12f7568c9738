// SPDX-License-Identifier: BSD-3-Clause
// Stages that run only forwards: the forwards that each may begin, and evaluations
// through such stages.

#include "actors/inference/evaluation_run.hpp"
#include "actors/inference/inference_stage_core.hpp"
#include "models/data/open_data.hpp"
#include "tests/actors/brittle_layer.hpp"
#include "tests/actors/inferred.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <new>
#include <stdexcept>

namespace troupe::inference_test {

using Catch::Matchers::ContainsSubstring;

namespace {

/// Work of a stage that counts calls.
struct counted_work : inference_work {
  buffer output_buffer() override {
    ++rooms;
    return {};
  }
  void forward(const portion& in, portion& out) override { out.length = in.length + 1; }
  double operations(const portion& in) const override {
    return static_cast<double>(in.samples);
  }

  int rooms = 0;
};

evaluation_job evaluation_of(const model_options& model, int stages, int threads = 2) {
  evaluation_job job{.plan = tiny::inference_of(model, stages, threads),
                     .data = *open_data("synthetic", model, 1)};
  job.samples = std::min<std::int64_t>(job.data->evaluation_size(), 150);
  job.microbatch = samples_a_forward(job.plan.whole, 16);
  return job;
}

score score_by_evaluator(const evaluation_job& job, std::int64_t batch) {
  const auto& whole = job.plan.whole;
  const auto parameters = tiny::buckets_of(job.plan);
  evaluator judge{whole, *job.data, job.samples, batch, 1};
  return *judge.evaluate(readable(parameters));
}

/// Held-out samples of which one cannot be read.
class broken_samples : public data_set {
public:
  explicit broken_samples(std::shared_ptr<const data_set> good)
    : good_(std::move(good)) {}
  void training(std::int64_t index, const sample_view& to) const override {
    good_->training(index, to);
  }
  std::int64_t evaluation_size() const override { return good_->evaluation_size(); }
  void evaluation(std::int64_t index, const sample_view& to) const override {
    if (index == 40)
      throw std::runtime_error("sample 40 is gone");
    good_->evaluation(index, to);
  }
  std::string description() const override { return "broken"; }

private:
  std::shared_ptr<const data_set> good_;
};

} // namespace

TEST_CASE("a stage begins a forward when portion, device and room are there",
          "[inference]") {
  const auto work = std::make_shared<counted_work>();
  inference_stage_core core{1, 3, work};
  CHECK(core.explain().peer == "stage 0");
  CHECK_FALSE(core.begin());
  for (int k = 0; k < 4; ++k)
    core.receive({.number = k, .samples = 5, .length = 7});
  for (int k = 0; k < portions_between; ++k) {
    const auto forward = core.begin();
    REQUIRE(forward);
    CHECK(forward->microbatch == k);
    CHECK(forward->operations == 5);
    CHECK_FALSE(core.begin()); // the device is at work
    CHECK(core.explain().input == "its device");
    forward->run();
    const auto made = core.end();
    CHECK(made.number == k);
    CHECK(made.length == 8);
  }
  CHECK_FALSE(core.begin()); // the upper stage has not used up its input
  CHECK(core.explain().peer == "stage 2");
  CHECK(work->rooms == portions_between);
  core.free_above();
  CHECK(core.begin());
}

TEST_CASE("neighbours of the ends of a pipeline are the client", "[inference]") {
  const auto work = std::make_shared<counted_work>();
  inference_stage_core only{0, 1, work};
  CHECK(only.explain().peer == "client");
  for (int k = 0; k <= portions_between; ++k)
    only.receive({.number = k});
  for (int k = 0; k < portions_between; ++k) {
    REQUIRE(only.begin());
    only.end();
  }
  CHECK(only.explain().peer == "client");
}

TEST_CASE("an evaluation through stages is the evaluator's to the bit", "[inference]") {
  const auto model = GENERATE(model_options{"gpt", 4, 8, 2, 12, 11},
                              model_options{.model = "gpt",
                                            .layers = 4,
                                            .width = 8,
                                            .heads = 2,
                                            .length = 12,
                                            .words = 11,
                                            .tied = true},
                              model_options{.model = "moe",
                                            .layers = 4,
                                            .width = 8,
                                            .heads = 2,
                                            .length = 12,
                                            .words = 11,
                                            .experts = {.count = 4, .chosen = 2}},
                              model_options{.model = "lenet"},
                              model_options{.model = "gpt",
                                            .layers = 4,
                                            .width = 8,
                                            .heads = 2,
                                            .length = 12,
                                            .words = 11,
                                            .stored = precision::bf16});
  const auto want = score_by_evaluator(evaluation_of(model, 1), 16);
  for (int stages = 1; stages <= 4; ++stages) {
    const auto job = evaluation_of(model, stages, 1 + stages % 3);
    const auto got = evaluate(job);
    INFO(model.model << " in " << stages << " stages: " << got.run.failure);
    REQUIRE(got.run.outcome == ending::finished);
    CHECK(got.final_score.loss == want.loss);
    CHECK(got.final_score.accuracy == want.accuracy);
    CHECK(got.run.late_allocations == 0);
    // The client's samples are in the prediction, and are not memory of a stage.
    const auto said = bytes_needed(job);
    REQUIRE(got.run.bytes.size() == said.size());
    for (std::size_t s = 0; s < said.size(); ++s) {
      CHECK(got.run.bytes[s] <= said[s] + 16 * 64);
      CHECK((s == 0 || said[s] <= got.run.bytes[s]));
    }
  }
}

// Products of other sizes sum in another order, which rounding shows.
TEST_CASE("the size of microbatches changes an evaluation by rounding alone",
          "[inference]") {
  auto job = evaluation_of({"gpt", 4, 8, 2, 12, 11}, 3);
  const auto want = score_by_evaluator(job, 16);
  for (const int microbatch : {1, 7, 150}) {
    job.microbatch = microbatch;
    CHECK(std::abs(evaluate(job).final_score.loss - want.loss) < 1e-6);
  }
}

TEST_CASE("an evaluation whose samples cannot be read fails with a sentence",
          "[inference]") {
  auto job = evaluation_of({"gpt", 4, 8, 2, 12, 11}, 3);
  job.data = std::make_shared<broken_samples>(job.data);
  job.microbatch = 4;
  const auto got = evaluate(job);
  CHECK(got.run.outcome == ending::failed);
  CHECK(got.run.failure == "client: sample 40 is gone");
}

TEST_CASE("an evaluation one of whose stages fails says which", "[inference]") {
  auto job = evaluation_of({"gpt", 4, 8, 2, 12, 11}, 3);
  auto& layer = job.plan.whole.layers[4];
  const bool out_of_memory = GENERATE(false, true);
  layer = std::make_shared<tiny::brittle_layer>(
    layer, 0, [out_of_memory, calls = std::make_shared<int>(0)] {
      if (++*calls < 3)
        return;
      if (out_of_memory)
        throw std::bad_alloc{};
      throw std::runtime_error("this layer breaks");
    });
  job.microbatch = 4;
  const auto got = evaluate(job);
  CHECK(got.run.outcome == ending::failed);
  CHECK(got.run.failure
        == (out_of_memory ? "stage 1: out of memory" : "stage 1: this layer breaks"));
}

TEST_CASE("weights that cannot be read end an evaluation before it begins",
          "[inference]") {
  auto job = evaluation_of({"gpt", 4, 8, 2, 12, 11}, 3);
  job.plan.weights = [read = job.plan.weights](std::size_t layer, float* to) {
    if (layer == 5)
      throw std::runtime_error("the file has gone");
    read(layer, to);
  };
  CHECK_THROWS_WITH(evaluate(job), "the file has gone");
}

TEST_CASE("an evaluation ends when its user wants it", "[inference]") {
  const std::atomic<bool> interrupted = true;
  const auto got = evaluate(evaluation_of({"gpt", 4, 8, 2, 12, 11}, 3), &interrupted);
  CHECK(got.run.outcome == ending::interrupted);
}

} // namespace troupe::inference_test
