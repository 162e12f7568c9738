// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/effects.hpp"

#include "experiments/options/option_catalog.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>

namespace troupe::effects_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

/// A program with every option of runs.
const program_info training{.name = "train",
                            .description = "",
                            .draws = true,
                            .resumes = true,
                            .distributes = true,
                            .defaults = {.schedules = {.names = {"1f1b"}}}};

using change = std::function<void(typed_options&)>;

/// Returns the error that refuses options before the setup; empty if none.
std::string fault_of(const change& said, const program_info& about = training) {
  auto typed = about.defaults;
  said(typed);
  const auto o = parse(typed, about.trains);
  return o ? without_effect(typed, *o, about) : o.error();
}

} // namespace

TEST_CASE("an option without effect is refused with what it belongs to", "[effects]") {
  const std::vector<std::pair<change, std::string>> wrong{
    {[](typed_options& o) { o.optimizer.momentum = 0.9; },
     "--momentum applies only to sgd"},
    {[](typed_options& o) { o.mesh.compress = "bf16"; },
     "--compress has no effect without data replicas that sum gradients"},
    {[](typed_options& o) {
       o.mesh.axes = "data=2", o.mesh.exchange = "server:async",
       o.mesh.compress = "bf16";
     },
     "--compress has no effect without data replicas that sum gradients"},
    {[](typed_options& o) { o.optimizer.name = "nadam", o.optimizer.momentum = 0.9; },
     "--momentum applies only to sgd"},
    {[](typed_options& o) { o.optimizer.name = "sgd", o.optimizer.betas = "0.9,0.99"; },
     "--betas applies only to adamw"},
    {[](typed_options& o) { o.optimizer.name = "sgd", o.optimizer.epsilon = 1e-7; },
     "--eps applies only to adamw"},
    {[](typed_options& o) { o.optimizer.name = "sgd", o.optimizer.decay = "matrices"; },
     "--decay has no effect, as --weight-decay is 0"},
    {[](typed_options& o) {
       o.optimizer.weight_decay = 0, o.optimizer.decay = "matrices";
     },
     "--decay has no effect, as --weight-decay is 0"},
    {[](typed_options& o) { o.model.name = "mlp", o.model.heads = 2; },
     "--heads applies only to gpt and moe"},
    {[](typed_options& o) { o.model.name = "mlp", o.model.length = 2; },
     "--seq applies only to gpt and moe"},
    {[](typed_options& o) { o.model.name = "lenet", o.model.words = 2; },
     "--vocab applies only to gpt and moe"},
    {[](typed_options& o) { o.model.name = "lenet", o.model.layers = 3; },
     "--layers applies only to gpt, moe"},
    {[](typed_options& o) { o.model.name = "lenet5", o.model.width = 3; },
     "--d-model applies only to gpt, moe"},
    {[](typed_options& o) { o.output.save_precision = "bf16"; }, "that --save writes"},
    {[](typed_options& o) { o.output.save_precision = "fp16"; }, "write fp32 or bf16"},
    {[](typed_options& o) { o.model.experts = 4; }, "say --model moe too"},
    {[](typed_options& o) { o.model.gate = "gshard"; }, "say --model moe too"},
    {[](typed_options& o) { o.model.top_k = 1; }, "say --model moe too"},
    {[](typed_options& o) { o.model.capacity = 1; }, "say --model moe too"},
    {[](typed_options& o) { o.model.balance = 1; }, "say --model moe too"},
    {[](typed_options& o) { o.model.gate_noise = 1; }, "say --model moe too"},
    {[](typed_options& o) { o.model.shared_expert = true; }, "say --model moe too"},
    {[](typed_options& o) { o.schedules.epochs = 1, o.schedules.steps = 7; },
     "--steps and --epochs"},
    {[](typed_options& o) { o.mesh.exchange = "tree"; }, "say --mesh data=2"},
    {[](typed_options& o) { o.mesh.exchange = "tree", o.mesh.axes = "pipe=2"; },
     "say --mesh data=2"},
    {[](typed_options& o) { o.mesh.sequence_parallel = true; }, "say --mesh tensor=2"},
    {[](typed_options& o) { o.run.clock = "virtual", o.run.stall_timeout = 1; },
     "--stall-timeout has no effect in virtual time"},
    {[](typed_options& o) { o.evaluation.every = 1, o.evaluation.samples = 0; },
     "--evaluate-samples is 0"},
    {[](typed_options& o) { o.output.print = true, o.output.quiet = true; },
     "--quiet prints nothing"},
    {[](typed_options& o) {
       o.optimizer.rate = 1, o.schedules.names = {"1f1b:lr=2,gpipe:lr=3"};
     },
     "--lr has no effect, as every schedule has a value of its own"},
    {[](typed_options& o) {
       o.optimizer.betas = "0.8,0.9", o.schedules.names = {"1f1b:beta1=0.7,beta2=0.8"};
     },
     "--betas has no effect, as every schedule has a value of its own"},
    {[](typed_options& o) { o.schedules.names = {"gpipe,1f1b:momentum=0.9"}; },
     "1f1b:momentum=0.9 applies only to sgd"},
    {[](typed_options& o) {
       o.optimizer.name = "sgd", o.schedules.names = {"1f1b:beta2=0.9"};
     },
     "1f1b:beta2=0.9 applies only to adamw"},
    {[](typed_options& o) {
       o.optimizer.name = "sgd", o.schedules.names = {"1f1b:eps=0.1"};
     },
     "1f1b:eps=0.1 applies only to adamw"},
    {[](typed_options& o) { o.schedules.names = {"zb-auto:measured=1,f=3"}; },
     "zb-auto:f=3 has no effect with measured=on"},
    {[](typed_options& o) { o.schedules.names = {"1f1b,zb-auto:measured=on,w=2"}; },
     "leave w= or measured=on out"},
  };
  for (const auto& [said, sentence] : wrong)
    CHECK_THAT(fault_of(said), ContainsSubstring(sentence));
}

TEST_CASE("an option with effect, or at its default, is none of that", "[effects]") {
  const std::vector<change> right{
    [](typed_options&) {},
    [](typed_options& o) { o.optimizer.momentum = 0; },
    [](typed_options& o) { o.optimizer.name = "sgd", o.optimizer.momentum = 0.9; },
    [](typed_options& o) {
      o.optimizer.betas = "0.9,0.99", o.optimizer.epsilon = 1e-7;
    },
    [](typed_options& o) { o.optimizer.name = "sgd", o.optimizer.betas = "0.9,0.999"; },
    [](typed_options& o) { o.model.name = "lenet", o.model.layers = 4; },
    [](typed_options& o) {
      o.model.name = "mlp", o.model.layers = 3, o.model.width = 9;
    },
    [](typed_options& o) {
      o.model.name = "moe", o.model.experts = 4, o.model.top_k = 2, o.model.heads = 2;
    },
    [](typed_options& o) { o.schedules.epochs = 1; },
    [](typed_options& o) { o.schedules.epochs = 1, o.schedules.steps = 100; },
    [](typed_options& o) { o.mesh.exchange = "tree", o.mesh.axes = "data=2"; },
    [](typed_options& o) { o.mesh.exchange = "ring"; },
    [](typed_options& o) { o.mesh.sequence_parallel = true, o.mesh.axes = "tensor=2"; },
    [](typed_options& o) { o.run.stall_timeout = 1; },
    [](typed_options& o) { o.optimizer.decay = "matrices"; },
    [](typed_options& o) {
      o.optimizer.name = "sgd", o.optimizer.decay = "matrices";
      o.schedules.names = {"gpipe:weight_decay=0.1,1f1b"};
    },
    [](typed_options& o) {
      o.optimizer.rate = 1, o.schedules.names = {"1f1b:lr=2,gpipe"};
    },
    [](typed_options& o) {
      o.optimizer.clip = "1", o.schedules.names = {"pipedream:clip=stage"};
    },
    [](typed_options& o) {
      o.optimizer.betas = "0.8,0.9", o.schedules.names = {"1f1b:beta1=0.7"};
    },
    [](typed_options& o) { o.schedules.names = {"zb-auto:measured=off,f=3"}; },
    [](typed_options& o) { o.schedules.names = {"zb-auto:measured=on,most_held=3"}; },
  };
  for (const auto& said : right)
    CHECK(fault_of(said) == "");
}

TEST_CASE("a key of --cost without effect is refused with what it belongs to",
          "[effects]") {
  const program_info simulation{
    .name = "simulate",
    .description = "",
    .trains = false,
    .defaults = {.schedules = {.names = {"1f1b"}, .steps = 1}, .cost = "F=1,B=2"}};
  const auto fault = [&](
                       const std::string& cost, const std::string& axes,
                       const change& also = [](typed_options&) {}) {
    return fault_of(
      [&](typed_options& o) {
        o.cost = cost;
        o.mesh.axes = axes;
        also(o);
      },
      simulation);
  };
  const auto blocks = [](typed_options& o) { o.mesh.recompute = "blocks=1"; };
  const auto whole = [](typed_options& o) { o.mesh.recompute = "stage"; };
  const auto directions = [](typed_options& o) {
    o.schedules.names = {"1f1b,chimera"};
  };
  struct entry {
    std::string cost, axes, advice;
  };
  for (const auto& [cost, axes, advice] :
       std::vector<entry>{{"bytes=4", "data=2,pipe=1", "say --stages 2"},
                          {"gradient=4", "tensor=2", "say --mesh data=2"},
                          {"buckets=2", "pipe=4", "--recompute blocks=1"},
                          {"tensor=4", "data=2", "say --mesh tensor=2"},
                          {"sums=4", "data=2", "say --mesh tensor=2"},
                          {"experts=4", "data=2", "say --mesh data=2,expert=2"},
                          {"R=4", "data=2", "say --recompute stage"},
                          {"latency=4", "pipe=1", "say --stages 2"},
                          {"bandwidth=4", "pipe=1", "say --stages 2"},
                          {"bandwidth=4", "pipe=4", "give --cost bytes="},
                          {"sum=4", "pipe=4", "say --mesh data=2 or tensor=2"}}) {
    INFO(cost << " on " << axes);
    const auto key = cost.substr(0, cost.find('=') + 1);
    CHECK_THAT(fault(cost, axes), StartsWith("--cost " + key)
                                    && ContainsSubstring(advice)
                                    && ContainsSubstring("leave " + key + " out"));
  }
  for (const auto& [cost, axes] : std::vector<std::pair<std::string, std::string>>{
         {"bytes=4,bandwidth=4,latency=4", "pipe=2"},
         {"gradient=4,buckets=2,bandwidth=4,sum=4", "data=2,pipe=1"},
         {"tensor=4,sums=1,bandwidth=4,sum=4", "tensor=2,pipe=1"},
         {"experts=4,replica=1/2", "data=2,expert=2"},
         {"F=1,B=2,I=1,W=1,U=3,FB=2", "pipe=2"},
         {"bytes=0,buckets=1,sums=2,latency=0", "pipe=1"}}) {
    INFO(cost << " on " << axes);
    CHECK(fault(cost, axes) == "");
  }
  CHECK(fault("R=4", "pipe=4", whole) == "");
  CHECK(fault("buckets=4", "pipe=4", blocks) == "");
  CHECK(fault("gradient=4,buckets=4,bandwidth=4,sum=4", "pipe=4", directions) == "");
  for (const std::string cost :
       {"bytes=4", "gradient=4", "buckets=4", "tensor=4", "sums=4", "experts=4"})
    CHECK_THAT(fault_of([&](typed_options& o) {
                 o.run.clock = "virtual", o.cost = cost;
                 o.mesh.axes = "data=2,tensor=2";
               }),
               ContainsSubstring("applies only to simulations"));
  CHECK(fault_of([](typed_options& o) {
          o.run.clock = "virtual", o.cost = "F=1,latency=1,bandwidth=1e6";
        })
        == "");
}

TEST_CASE("what is wrong for another reason is not called without effect",
          "[effects]") {
  CHECK_THAT(fault_of([](typed_options& o) {
               o.model.name = "vgg", o.model.heads = 3, o.model.experts = 3;
             }),
             ContainsSubstring("there is no model 'vgg'"));
  CHECK_THAT(fault_of([](typed_options& o) {
               o.optimizer.name = "none", o.optimizer.momentum = 1;
             }),
             ContainsSubstring("there are adamw, nadam, sgd"));
  CHECK_THAT(
    fault_of([](typed_options& o) { o.mesh.axes = "x", o.mesh.exchange = "tree"; }),
    ContainsSubstring("write data=, pipe="));
}

TEST_CASE("a program's own defaults are its defaults", "[effects]") {
  const program_info simulation{.name = "simulate",
                                .description = "",
                                .trains = false,
                                .defaults = {.schedules = {.steps = 1}}};
  CHECK(fault_of([](typed_options&) {}, simulation) == "");
  CHECK_THAT(fault_of([](typed_options& o) { o.schedules.names = {"1f1b:momentum=1"}; },
                      simulation),
             ContainsSubstring("1f1b has no parameter 'momentum'"));
  CHECK_THAT(fault_of([](typed_options& o) { o.mesh.exchange = "tree"; }, simulation),
             StartsWith("--exchange"));
}

TEST_CASE("options that contradict each other are refused by their names",
          "[effects]") {
  const std::vector<std::pair<change, std::string>> wrong{
    {[](typed_options& o) { o.data.text = "text:a\tb"; },
     "--data has a control character"},
    {[](typed_options& o) { o.data.evaluation = "text:a\tb"; },
     "--evaluate-data has a control character"},
    {[](typed_options& o) { o.cost = "F=1"; }, "--cost applies only in virtual time"},
    {[](typed_options& o) { o.machines = "ranks=1"; },
     "--machines applies only in virtual time"},
    {[](typed_options& o) {
       o.checkpoint.folder = "c", o.checkpoint.every = 1;
       o.schedules.names = {"gpipe,1f1b"};
     },
     "--checkpoint takes the checkpoints of one schedule"},
    {[](typed_options& o) { o.checkpoint.resume = "c", o.data.init = "w"; },
     "--resume and --init both give the initial weights"},
    {[](typed_options& o) {
       o.nodes.nodes = "127.0.0.1:4242", o.run.clock = "virtual";
     },
     "--nodes has no effect in virtual time"},
    {[](typed_options& o) {
       o.nodes.nodes = "127.0.0.1:4242", o.evaluation.verify = 1;
     },
     "--verify proves only runs without nodes"},
    {[](typed_options& o) { o.checkpoint.resume = "c", o.evaluation.verify = 1; },
     "--verify proves a run from its first step on"},
    {[](typed_options& o) { o.nodes.nodes = "127.0.0.1:4242", o.nodes.restart = true; },
     "--restart needs checkpoints or kept steps"},
    {[](typed_options& o) { o.parts = "training", o.comparison = "pytorch"; },
     "--beside measures none of the parts"},
  };
  for (const auto& [said, sentence] : wrong)
    CHECK_THAT(fault_of(said), StartsWith(sentence));
}

TEST_CASE("the rules of each option fit together", "[effects]") {
  for (const auto& row : all_rows()) {
    INFO(row.name());
    CHECK(row.rules.has != nullptr);
    CHECK_FALSE(row.heading.empty());
    CHECK((row.rules.record.files == recorded_in::nothing)
          == (row.rules.record.value == nullptr));
    if (row.rules.changeable) // else --change has nothing to compare
      CHECK(row.rules.record.files != recorded_in::nothing);
    CHECK((row.rules.effect.condition == every_run)
          == row.rules.effect.otherwise.empty());
  }
}

} // namespace troupe::effects_test
