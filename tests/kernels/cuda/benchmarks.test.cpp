// SPDX-License-Identifier: BSD-3-Clause
// bench on a simulated GPU: the numbers mean nothing, but each is of the named thing.

#include "experiments/benchmarks/benchmarks.hpp"

#include "models/input_file.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace troupe::benchmarks_test {

namespace {

/// The measurements of a training on the simulated GPU.
template <class Measure>
std::vector<measurement> measured_by(const run_plan& plan, const Measure& measure) {
  std::vector<measurement> all;
  const options asked{};
  measure(benchmark{asked,
                    plan,
                    {.model = plan.work->whole.options.model},
                    [&](const measurement& m) { all.push_back(m); },
                    8});
  return all;
}

/// Benchmarks make no batches in which graphs are made, while an object lives.
struct without_graphs {
  without_graphs() { setenv("TROUPE_GRAPHS", "off", 1); }
  ~without_graphs() { unsetenv("TROUPE_GRAPHS"); }
};

run_plan on_a_gpu(const model_options& model) {
  auto plan = tiny::training_of(one_f_one_b(), {1, 2, 1}, clock_kind::real, model);
  plan.machine.processors = {processor{0}};
  return plan;
}

} // namespace

#ifndef TROUPE_SANITIZED // minutes each
TEST_CASE("a GPU's ceilings and training are measured on it", "[streams]") {
  const without_graphs fewer_batches;
  const auto all = measured_by(on_a_gpu({"mlp", 4, 6}), [](const benchmark& b) {
    measure_gpu(b);
    measure_training(b);
    measure_schedules(b);
  });
  const auto has = [&](const std::string& name) {
    return std::ranges::count(all, name, &measurement::name) == 1;
  };
  for (const auto* const name :
       {"product 8^3 of fp32 on cuda:0", "product 8^3 of bf16 on cuda:0",
        "product 8^3 of tf32 on cuda:0", "copy of memory on cuda:0",
        "bare loop, one GPU", "one stage's actors, one GPU", "parameters",
        "1f1b, 4 stages that share the GPU", "1f1b, 2 ranks", "1f1b, 4 ranks"})
    CHECK(has(name));
  CHECK(std::ranges::all_of(all, [](const auto& m) { return m.value > 0; }));
  CHECK(std::ranges::none_of(
    all, [](const auto& m) { return m.name.find("core") != std::string::npos; }));
}

TEST_CASE("a network whose head is tied is measured under schedules that it goes with",
          "[streams]") {
  const without_graphs fewer_batches;
  auto model = tiny::gpt(2);
  model.tied = true;
  const auto all = measured_by(on_a_gpu(model), [](const benchmark& b) {
    measure_training(b);
    measure_schedules(b);
  });
  const auto of = [&](const std::string& name) {
    const auto found = std::ranges::find(all, name, &measurement::name);
    return found == all.end() ? -1 : found->value;
  };
  // V C + T C of the embedding, 12 C C + 13 C of a block, 2 C of the last norm
  CHECK(of("parameters") == 11 * 8 + 4 * 8 + 2 * (12 * 8 * 8 + 13 * 8) + 2 * 8);
  CHECK(of("1f1b, 2 ranks") > 0);
  CHECK(of("pipedream, 2 ranks") == -1);
}

TEST_CASE("runs on a GPU are held to each other and to the CPU", "[streams]") {
  auto model = tiny::gpt(4); // four stages too
  model.stored = precision::bf16;
  const auto all = measured_by(on_a_gpu(model), [](const benchmark& b) {
    measure_actions(b);
    check_gpu_runs(b);
  });
  const auto of = [&](const std::string& name) {
    const auto found = std::ranges::find(all, name, &measurement::name);
    REQUIRE(found != all.end());
    return found->value;
  };
  CHECK(of("gap between actions on the stream") > 0);
  CHECK(of("mean gap between actions on the stream") > 0);
  CHECK(of("host time of an action") > 0);
  CHECK(of("values in which two runs differ") == 0);
  CHECK(of("values in which one stage and four stages differ") == 0);
  CHECK(of("loss in fp32 beside the CPU's") < 1e-5); // of bf16 it would be 1e-3
  const auto gradients = of("gradients in fp32 beside the CPU's");
  CHECK(gradients > 0); // the processor was another one
  CHECK(gradients < 1e-5);
}

#endif

TEST_CASE("a GPU without algorithms adds no row to a table, and keeps the others",
          "[streams]") {
  const temporary_folder folder;
  options asked{};
  const auto file = folder.path() / "choices.csv";
  asked.run.choose = file;
  const auto plan = on_a_gpu(tiny::gpt(2));
  const benchmark b{
    asked, plan, {.model = plan.work->whole.options.model}, [](const auto&) {}, 8};
  const auto write_and_read = [&] {
    CHECK(write_choices(b) == 0U);
    return cuda::parse_choices(input_file::open(file, "the table")->content()).value();
  };
  CHECK(write_and_read() == cuda::product_choices{});
  cuda::product_choices other;
  other.rows[{.gpu = "NVIDIA H200", .cublaslt = 1, .m = 2, .k = 3, .n = 4}] = {5, 1, 2};
  folder.write("choices.csv", cuda::to_csv(other));
  CHECK(write_and_read() == other);
  folder.write("choices.csv", "gpu,m\n");
  CHECK(write_choices(b).error().starts_with("--choose: " + file.string()
                                             + ": line 1 is not the header"));
}

} // namespace troupe::benchmarks_test
