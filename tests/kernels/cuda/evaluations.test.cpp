// SPDX-License-Identifier: BSD-3-Clause
// Evaluations on a simulated GPU: beside a training, through stages, and by the
// programs. A value that the host reads or writes too early shows as another loss.

#include "actors/inference/evaluation_run.hpp"
#include "experiments/session/saved_network.hpp"
#include "experiments/session/session.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "plan/evaluated_parts.hpp"
#include "tests/actors/brittle_layer.hpp"
#include "tests/actors/inferred.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/experiments/tiny_options.hpp"
#include "tests/random/wish.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

namespace troupe::evaluations_test {

namespace {

const processor a_gpu{0}, the_cpu{};

constexpr std::int64_t samples = 23, batch = 5; // the last forward has three

struct evaluated_model {
  model_options what;
  double rounding; // between the CPU and a GPU, relative
};

evaluated_model model_of(const std::string& name) {
  const auto stored = name == "gpt in bf16" ? precision::bf16 : precision::fp32;
  if (name == "mlp" || name == "lenet")
    return {{name, 5, 12}, 1e-5};
  model_options result{name == "moe" ? name : "gpt", 4, 8, 2, 12, 11};
  result.stored = stored;
  result.experts = {.count = 4, .chosen = 2};
  return {result, stored == precision::bf16 ? 2e-3 : 1e-5};
}

evaluation_job evaluation_of(const model_options& model, int stages) {
  return {.plan = tiny::inference_of(model, stages),
          .data = *open_data("synthetic", model, 1),
          .samples = samples,
          .microbatch = batch};
}

/// By an evaluator whose layers are shared out to these processors.
score score_on(const evaluation_job& job, std::vector<evaluated_part> parts) {
  const auto parameters = tiny::buckets_of(job.plan);
  evaluator judge{job.plan.whole, *job.data, samples, batch, 2, std::move(parts)};
  return *judge.evaluate(readable(parameters));
}

bool is_near(double found, double expected, double rounding = 1e-5) {
  return std::abs(found - expected) < rounding * expected;
}

/// The losses of a run's evaluations, one for each batch, by one evaluator.
std::vector<double> losses_of(const run_plan& plan, std::vector<evaluated_part> parts,
                              run_result& result) {
  evaluator judge{plan.work->whole,     *plan.work->data, samples, batch,
                  plan.machine.threads, std::move(parts)};
  std::vector<double> losses;
  result =
    perform(plan, {.evaluate = [&](int, const std::vector<const float*>& parameters) {
              losses.push_back(judge.evaluate(parameters)->loss);
            }});
  return losses;
}

nlohmann::json content_of(const std::filesystem::path& file) {
  return nlohmann::json::parse(std::ifstream{file});
}

} // namespace

TEST_CASE("a GPU evaluates what the CPU does, whenever its stream runs", "[streams]") {
  const std::string name = GENERATE("gpt", "mlp", "lenet", "moe", "gpt in bf16");
  const auto model = model_of(name);
  const auto job = evaluation_of(model.what, 1);
  const auto layers = static_cast<int>(job.plan.whole.layers.size());
  const auto on_cpu = score_on(job, {}), on_gpu = score_on(job, {{layers, a_gpu}});
  INFO(name << ": " << on_cpu.loss << " and " << on_gpu.loss);
  CHECK(is_near(on_gpu.loss, on_cpu.loss, model.rounding));
  CHECK(on_gpu.loss != on_cpu.loss); // the processor was another one
  CHECK(on_gpu.accuracy == on_cpu.accuracy);
  for (std::uint64_t seed = 1; seed <= 3 * gpu::seeds(); ++seed) {
    INFO("seed " << seed);
    on_host::seed_streams(seed);
    CHECK(score_on(job, {{layers, a_gpu}}).loss == on_gpu.loss);
    CHECK(score_on(job, {{1, a_gpu}, {3, a_gpu}, {layers, a_gpu}}).loss == on_gpu.loss);
  }
}

TEST_CASE("an evaluation whose parts are on the CPU and a GPU is near", "[streams]") {
  const std::string name = GENERATE("gpt", "mlp");
  const auto job = evaluation_of(model_of(name).what, 1);
  const auto layers = static_cast<int>(job.plan.whole.layers.size());
  const auto on_cpu = score_on(job, {}).loss;
  CHECK(score_on(job, {{2, the_cpu}, {layers, the_cpu}}).loss == on_cpu);
  CHECK(is_near(score_on(job, {{2, the_cpu}, {layers, a_gpu}}).loss, on_cpu));
  CHECK(is_near(score_on(job, {{2, a_gpu}, {layers, the_cpu}}).loss, on_cpu));
}

TEST_CASE("stages on a GPU evaluate what an evaluator does there, to the bit",
          "[streams]") {
  const std::string name = GENERATE("gpt", "mlp", "lenet", "moe", "gpt in bf16");
  const auto model = model_of(name).what;
  const auto whole = evaluation_of(model, 1);
  const auto want =
    score_on(whole, {{static_cast<int>(whole.plan.whole.layers.size()), a_gpu}});
  for (int stages = 1; stages <= 3; ++stages)
    for (std::uint64_t seed = 1; seed <= gpu::seeds(); ++seed) {
      on_host::seed_streams(seed);
      auto job = evaluation_of(model, stages);
      job.plan.processors = {a_gpu};
      const auto got = evaluate(job);
      INFO(name << " in " << stages << " stages, seed " << seed << ": "
                << got.run.failure);
      REQUIRE(got.run.outcome == ending::finished);
      CHECK(got.final_score.loss == want.loss);
      CHECK(got.final_score.accuracy == want.accuracy);
      CHECK(got.run.late_allocations == 0);
      const auto said = bytes_needed(job);
      for (std::size_t s = 0; s < said.size(); ++s)
        CHECK(got.run.bytes[s] <= said[s] + 16 * 64);
    }
}

TEST_CASE("stages on the CPU and a GPU evaluate one network", "[streams]") {
  auto job = evaluation_of(model_of("gpt").what, 3);
  const auto on_cpu = evaluate(job).final_score.loss;
  job.plan.processors =
    GENERATE(std::vector{a_gpu, the_cpu}, std::vector{the_cpu, a_gpu});
  const auto mixed = evaluate(job);
  REQUIRE(mixed.run.outcome == ending::finished);
  CHECK(is_near(mixed.final_score.loss, on_cpu));
  CHECK(mixed.final_score.loss != on_cpu);
}

TEST_CASE("an evaluation that fails on a GPU says where", "[streams]") {
  auto job = evaluation_of(model_of("gpt").what, 3);
  auto& layer = job.plan.whole.layers[4];
  layer =
    std::make_shared<tiny::brittle_layer>(layer, 0, [calls = std::make_shared<int>(0)] {
      if (++*calls == 3)
        throw std::runtime_error("this layer breaks");
    });
  job.plan.processors = {a_gpu};
  const auto got = evaluate(job);
  CHECK(got.run.outcome == ending::failed);
  CHECK(got.run.failure == "stage 1: this layer breaks");
}

TEST_CASE("evaluations on a GPU change no bit of its training", "[streams]") {
  const auto clock = GENERATE(clock_kind::virtual_time, clock_kind::real);
  const auto& mesh = GENERATE(tiny::mesh_of_ranks{}, tiny::mesh_of_ranks{.tensor = 2},
                              tiny::mesh_of_ranks{.data = 2, .exchange = "zero3"},
                              tiny::mesh_of_ranks{.stored = precision::bf16});
  if (!tests::tries(8, {clock == clock_kind::real ? "real" : "virtual"}))
    return;
  INFO(mesh.text());
  auto plan = tiny::training_on(mesh, one_f_one_b(), {2, 2, 4}, clock);
  plan.machine.processors = {a_gpu};
  const auto alone = perform(plan);
  REQUIRE(alone.outcome == ending::finished);
  plan.copies.evaluate_every = 1;
  for (std::uint64_t seed = 1; seed <= gpu::seeds(); ++seed) {
    on_host::seed_streams(seed);
    run_result by_gpu, by_cpu;
    const auto losses = losses_of(plan, evaluated_parts(plan), by_gpu);
    const auto on_cpu = losses_of(plan, {}, by_cpu);
    INFO("seed " << seed);
    CHECK(by_gpu.loss == alone.loss);
    CHECK((by_gpu.parameters == alone.parameters));
    REQUIRE(losses.size() == 4);
    REQUIRE(on_cpu.size() == 4);
    const auto rounding = mesh.stored == precision::bf16 ? 2e-3 : 1e-5;
    for (std::size_t i = 0; i < losses.size(); ++i)
      CHECK(is_near(losses[i], on_cpu[i], rounding));
    CHECK(losses != on_cpu);
  }
}

TEST_CASE("each stage is evaluated where its first replica trains", "[streams]") {
  using parts = std::vector<evaluated_part>;
  auto plan = tiny::training_of(one_f_one_b(), {4, 4, 1}, clock_kind::real);
  const auto& first = plan.work->first_layers;
  const processor other{1};
  CHECK(evaluated_parts(plan) == parts{{first[4], the_cpu}});
  plan.machine.processors = {a_gpu};
  CHECK(evaluated_parts(plan) == parts{{first[4], a_gpu}});
  CHECK(evaluated_parts(plan, false) == parts{{first[4], the_cpu}});
  plan.machine.processors = {a_gpu, a_gpu, other, the_cpu};
  CHECK(evaluated_parts(plan)
        == parts{{first[2], a_gpu}, {first[3], other}, {first[4], the_cpu}});
  plan.sch = chimera(); // of its directions the first
  CHECK(evaluated_parts(plan)
        == parts{{first[2], a_gpu}, {first[3], other}, {first[4], the_cpu}});
}

TEST_CASE("evaluations count among what a run needs of a GPU", "[streams]") {
  auto plan = tiny::training_of(gpipe(), {2, 4, 1}, clock_kind::real);
  plan.machine.processors = {a_gpu};
  const auto beside = [](const run_plan&) {
    return caller_bytes{.of_gpus = {{0, std::int64_t{8} << 30}}};
  };
  CHECK(validation_error(plan).empty());
  const auto wrong = validation_error(plan, beside);
  CHECK(wrong.starts_with("this run needs at least "));
  CHECK(wrong.ends_with(
    " MiB of cuda:0's memory (2 ranks and evaluations), and only 8192 MiB are free"));
}

TEST_CASE("train evaluates on the GPU that it trains on", "[streams]") {
  const temporary_folder folder;
  auto typed = tiny::options_of("1f1b");
  typed.schedules.steps = 3;
  typed.evaluation = {.every = 1, .samples = samples};
  typed.run.device = "cuda";
  typed.output.quiet = true;
  typed.output.command = {"train"};
  typed.output.json = folder.path() / "results.json";
  typed.output.save = folder.path() / "w.safetensors";
  const auto o = parse(typed, true).value();
  REQUIRE(run_session(o) == 0);
  const auto run = content_of(typed.output.json)["runs"][0];
  const double found = run["evaluation"]["loss"];
  CHECK(run["evaluations"].size() == 3);

  typed.inference.weights = typed.output.save;
  typed.run.device = "cpu";
  auto saved = open_saved_network(parse(typed, true).value()).value();
  evaluation_job job{.plan = saved.plan,
                     .data = *open_data("synthetic", o.model, o.data.seed),
                     .samples = samples,
                     .microbatch = samples};
  const auto on_cpu = evaluate(job).final_score.loss;
  CHECK(is_near(found, on_cpu));
  CHECK(found != on_cpu);

  typed.run.device = "cuda:0";
  saved = open_saved_network(parse(typed, true).value()).value();
  CHECK(saved.plan.processors == std::vector{a_gpu});
  typed.mesh.stages = 1;
  typed.run.device = "cuda:0,cpu";
  CHECK(open_saved_network(parse(typed, true).value()).error()
        == "--device lists 2 processors for one stage: list at most one processor for "
           "each stage");
}

} // namespace troupe::evaluations_test
