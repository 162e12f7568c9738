// SPDX-License-Identifier: BSD-3-Clause
// Runs in which every access of every kernel is watched: only memory of tensors is
// used, without races, and only written values are read.

#ifndef TROUPE_SANITIZED // where kernels report accesses

#include "actors/inference/evaluation_run.hpp"
#include "actors/proof/proof.hpp"
#include "kernels/cuda/on_host/launch_registry.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "plan/evaluated_parts.hpp"
#include "tests/actors/inferred.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/random/wish.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

using namespace troupe;

namespace {

const processor a_gpu{0}, the_cpu{};

const std::vector<tiny::mesh_of_ranks> meshes{
  {},
  {.stored = precision::bf16},
  {.data = 2, .exchange = "zero3", .clips = true},
  {.tensor = 2, .clips = true},
  {.tied = true, .clips = true},
  {.data = 2,
   .tensor = 2,
   .exchange = "zero1",
   .by_sequence = true,
   .clips = true,
   .stored = precision::bf16},
  {.data = 2, .expert = 2, .experts = true, .clips = true, .noise = 0.5},
  {.data = 2, .exchange = "hogwild", .stored = precision::bf16},
};

/// Code that proves a run accesses only tensors, too.
run_result proved(const run_plan& plan) {
  auto result = perform(plan);
  for (const auto& p : prove(plan, result)) {
    INFO(p.name << ": " << p.detail);
    CHECK_FALSE(p.fails());
  }
  return result;
}

/// \param run returns a result with an ending
template <class Run>
void watch(const Run& run) {
  for (std::uint64_t seed = 1; seed <= gpu::seeds(); ++seed) {
    INFO("seed " << seed);
    on_host::seed_streams(seed);
    on_host::memory_watch all;
    on_host::set_memory_watch(&all);
    const auto result = run();
    on_host::set_memory_watch(nullptr);
    CHECK(result.failure == "");
    CHECK(result.outcome == ending::finished);
  }
}

void watch(run_plan plan, std::vector<processor> on) {
  plan.machine.processors = std::move(on);
  watch([&] { return perform(plan); });
}

} // namespace

TEST_CASE("kernels of a run reach tensors alone, and race with nobody", "[watched]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto& mesh = GENERATE(from_range(meshes));
  if (clock == clock_kind::virtual_time && mesh.stored != precision::bf16)
    return; // streams that are waited for have fewer races
  const auto sch = mesh.exchange == "hogwild" ? pipedream() : chimera();
  INFO(mesh.text());
  // Hogwild sums nothing and gathers nothing: its buffers are those of one pipeline.
  const int microbatches = mesh.exchange == "hogwild" || mesh.experts ? 2 : 4;
  watch(tiny::training_on(mesh, sch, {2, microbatches, 2}, clock), {a_gpu});
}

TEST_CASE("what proves a run reaches tensors alone, too", "[watched]") {
  const auto& mesh = GENERATE(tiny::mesh_of_ranks{.tied = true, .clips = true},
                              tiny::mesh_of_ranks{.data = 2,
                                                  .expert = 2,
                                                  .experts = true,
                                                  .clips = true,
                                                  .stored = precision::bf16,
                                                  .noise = 0.5});
  INFO(mesh.text());
  auto plan =
    tiny::training_on(mesh, one_f_one_b(), {2, 2, 2}, clock_kind::virtual_time);
  plan.machine.processors = {a_gpu};
  keep_for_proofs(plan);
  watch([&] { return proved(plan); });
}

TEST_CASE("also where their GPUs exchange arrays themselves", "[watched]") {
  const auto& mesh = GENERATE(from_range(meshes));
  if (mesh.data * mesh.tensor == 1 || mesh.exchange == "hogwild")
    return;
  INFO(mesh.text());
  watch(tiny::training_on(mesh, chimera(), {2, 2, 2}, clock_kind::real),
        {{0}, {1}, {2}, {3}});
}

TEST_CASE("also where messages leave before they are made", "[watched]") {
  const std::string name = GENERATE("1f1b", "zb-h1", "2bw");
  const auto on =
    GENERATE(std::vector{a_gpu}, std::vector<processor>{{0}, {1}}); // by channels
  INFO(name << " on " << on.size());
  auto plan = tiny::training_of(find_schedule(name).value(), {3, 6, 2},
                                clock_kind::real, {"mlp", 5, 12});
  const auto before = on_host::marks_passed();
  watch(plan, on);
  CHECK(on_host::marks_passed() > before);
}

TEST_CASE("also where GPUs give each other what is there", "[watched]") {
  watch(tiny::training_of(find_schedule("ampnet").value(), {3, 6, 2}, clock_kind::real,
                          {"mlp", 5, 12}),
        {{0}, {1}, {2}});
}

TEST_CASE("also where other ranks are on the CPU", "[watched]") {
  const auto on = GENERATE(std::vector{a_gpu, the_cpu}, std::vector{the_cpu, a_gpu});
  watch(tiny::training_of(one_f_one_b(), {2, 4, 2}, clock_kind::virtual_time), on);
}

TEST_CASE("images too", "[watched]") {
  watch(
    tiny::training_of(gpipe(), {2, 2, 2}, clock_kind::virtual_time, {"lenet", 5, 12}),
    {a_gpu});
}

TEST_CASE("evaluations beside a run too", "[watched]") {
  const auto& mesh = GENERATE(tiny::mesh_of_ranks{}, tiny::mesh_of_ranks{.tensor = 2});
  auto plan =
    tiny::training_on(mesh, one_f_one_b(), {2, 2, 2}, clock_kind::virtual_time);
  plan.machine.processors = GENERATE(std::vector{a_gpu}, std::vector{a_gpu, the_cpu});
  plan.copies.evaluate_every = 1;
  watch([&] {
    evaluator judge{plan.work->whole, *plan.work->data, 5, 2, 1, evaluated_parts(plan)};
    return perform(plan,
                   {.evaluate = [&](int, const std::vector<const float*>& parameters) {
                     judge.evaluate(parameters);
                   }});
  });
}

TEST_CASE("evaluations through stages too", "[watched]") {
  const std::string name = GENERATE("gpt", "mlp");
  const model_options model{name, 4, 8, 2, 4, 11};
  evaluation_job job{.plan = tiny::inference_of(model, 3),
                     .data = *open_data("synthetic", model, 1),
                     .samples = 5,
                     .microbatch = 2};
  job.plan.processors = GENERATE(std::vector{a_gpu}, std::vector{the_cpu, a_gpu});
  watch([&] { return evaluate(job).run; });
}

#endif
