// Runs of which every access of every kernel is watched: to memory of tensors alone,
// without races, of values that somebody wrote.

#ifndef TROUPE_SANITIZED // where kernels tell of their accesses

#include "kernels/cuda/on_host/onlooker.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "tests/actors/meshes.hpp"
#include "tests/kernels/cuda/seeds.hpp"

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
  {.tensor = 2},
  {.data = 2,
   .tensor = 2,
   .exchange = "zero1",
   .by_sequence = true,
   .stored = precision::bf16},
  {.data = 2, .expert = 2, .experts = true, .noise = 0.5},
  {.data = 2, .exchange = "hogwild", .stored = precision::bf16},
};

void watch(run_plan plan, std::vector<processor> on) {
  plan.processors = std::move(on);
  for (std::uint64_t seed = 1; seed <= gpu::seeds(); ++seed) {
    INFO("seed " << seed);
    on_host::seed_streams(seed);
    on_host::memory_watch all;
    on_host::look_on(&all);
    const auto result = perform(plan);
    on_host::look_on(nullptr);
    CHECK(result.failure == "");
    CHECK(result.how == ending::finished);
  }
}

} // namespace

TEST_CASE("kernels of a run reach tensors alone, and race with nobody", "[watched]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto& mesh = GENERATE(from_range(meshes));
  const auto sch = mesh.exchange == "hogwild" ? pipedream() : chimera();
  INFO(mesh.text());
  watch(tiny::training_on(mesh, sch, {2, 4, 2}, clock), {a_gpu});
}

TEST_CASE("also where their GPUs exchange arrays themselves", "[watched]") {
  const auto& mesh = GENERATE(from_range(meshes));
  if (mesh.data * mesh.tensor == 1 || mesh.exchange == "hogwild")
    return;
  INFO(mesh.text());
  watch(tiny::training_on(mesh, chimera(), {2, 4, 2}, clock_kind::real),
        {{0}, {1}, {2}, {3}});
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

#endif
