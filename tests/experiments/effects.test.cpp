#include "experiments/session/effects.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

const program_about training{
  .name = "train", .description = "", .defaults = {.schedules = {"1f1b"}}};

using change = std::function<void(options&)>;

std::string fault_of(const change& said, const program_about& about = training) {
  auto o = about.defaults;
  said(o);
  return without_effect(o, about);
}

} // namespace

TEST_CASE("an option without effect is refused with what it belongs to", "[effects]") {
  const std::vector<std::pair<change, std::string>> wrong{
    {[](options& o) { o.momentum = 0.9; }, "--momentum is of sgd"},
    {[](options& o) { o.optimizer = "sgd", o.betas = "0.9,0.99"; },
     "--betas is of adamw"},
    {[](options& o) { o.optimizer = "sgd", o.epsilon = 1e-7; }, "--eps is of adamw"},
    {[](options& o) { o.optimizer = "sgd", o.decay = "matrices"; },
     "--decay says what --weight-decay shrinks"},
    {[](options& o) { o.weight_decay = 0, o.decay = "matrices"; },
     "--decay says what --weight-decay shrinks"},
    {[](options& o) { o.model = "mlp", o.heads = 2; }, "--heads is of gpt and moe"},
    {[](options& o) { o.model = "mlp", o.length = 2; }, "--seq is of gpt and moe"},
    {[](options& o) { o.model = "lenet", o.words = 2; }, "--vocab is of gpt and moe"},
    {[](options& o) { o.model = "lenet", o.layers = 3; }, "--layers is of gpt, moe"},
    {[](options& o) { o.model = "lenet", o.width = 3; }, "--d-model is of gpt, moe"},
    {[](options& o) { o.experts = 4; }, "say --model moe too"},
    {[](options& o) { o.gate = "gshard"; }, "say --model moe too"},
    {[](options& o) { o.top_k = 1; }, "say --model moe too"},
    {[](options& o) { o.capacity = 1; }, "say --model moe too"},
    {[](options& o) { o.balance = 1; }, "say --model moe too"},
    {[](options& o) { o.gate_noise = 1; }, "say --model moe too"},
    {[](options& o) { o.shared_expert = true; }, "say --model moe too"},
    {[](options& o) { o.epochs = 1, o.steps = 7; }, "--steps and --epochs"},
    {[](options& o) { o.exchange = "tree"; }, "say --mesh data=2"},
    {[](options& o) { o.exchange = "tree", o.mesh = "pipe=2"; }, "say --mesh data=2"},
    {[](options& o) { o.sequence_parallel = true; }, "say --mesh tensor=2"},
    {[](options& o) { o.clock = "virtual", o.stall_timeout = 1; },
     "--stall-timeout is of real time"},
    {[](options& o) { o.evaluate_every = 1, o.evaluate_samples = 0; },
     "--evaluate-samples is 0"},
    {[](options& o) { o.print = true, o.quiet = true; }, "--quiet keeps back"},
    {[](options& o) { o.rate = 1, o.schedules = {"1f1b:lr=2,gpipe:lr=3"}; },
     "--lr is said by every schedule for itself"},
    {[](options& o) {
       o.betas = "0.8,0.9", o.schedules = {"1f1b:beta1=0.7,beta2=0.8"};
     },
     "--betas is said by every schedule for itself"},
    {[](options& o) { o.schedules = {"gpipe,1f1b:momentum=0.9"}; },
     "1f1b:momentum=0.9: momentum is of sgd"},
    {[](options& o) { o.optimizer = "sgd", o.schedules = {"1f1b:beta2=0.9"}; },
     "1f1b:beta2=0.9: beta2 is of adamw"},
    {[](options& o) { o.optimizer = "sgd", o.schedules = {"1f1b:eps=0.1"}; },
     "1f1b:eps=0.1: eps is of adamw"},
  };
  for (const auto& [said, sentence] : wrong)
    CHECK_THAT(fault_of(said), ContainsSubstring(sentence));
}

TEST_CASE("an option with effect, or at its default, is none of that", "[effects]") {
  const std::vector<change> right{
    [](options&) {},
    [](options& o) { o.momentum = 0; },
    [](options& o) { o.optimizer = "sgd", o.momentum = 0.9; },
    [](options& o) { o.betas = "0.9,0.99", o.epsilon = 1e-7; },
    [](options& o) { o.optimizer = "sgd", o.betas = "0.9,0.999"; },
    [](options& o) { o.model = "lenet", o.layers = 4; },
    [](options& o) { o.model = "mlp", o.layers = 3, o.width = 9; },
    [](options& o) { o.model = "moe", o.experts = 4, o.top_k = 2, o.heads = 2; },
    [](options& o) { o.epochs = 1; },
    [](options& o) { o.epochs = 1, o.steps = 100; },
    [](options& o) { o.exchange = "tree", o.mesh = "data=2"; },
    [](options& o) { o.exchange = "ring"; },
    [](options& o) { o.sequence_parallel = true, o.mesh = "tensor=2"; },
    [](options& o) { o.stall_timeout = 1; },
    [](options& o) { o.decay = "matrices"; },
    [](options& o) {
      o.optimizer = "sgd", o.decay = "matrices";
      o.schedules = {"gpipe:weight_decay=0.1,1f1b"};
    },
    [](options& o) { o.rate = 1, o.schedules = {"1f1b:lr=2,gpipe"}; },
    [](options& o) { o.clip = "1", o.schedules = {"pipedream:clip=stage"}; },
    [](options& o) { o.betas = "0.8,0.9", o.schedules = {"1f1b:beta1=0.7"}; },
  };
  for (const auto& said : right)
    CHECK(fault_of(said) == "");
}

TEST_CASE("what is wrong for another reason is not called without effect",
          "[effects]") {
  CHECK(fault_of([](options& o) { o.model = "vgg", o.heads = 3, o.experts = 3; })
        == "");
  CHECK(fault_of([](options& o) { o.optimizer = "lion", o.momentum = 1; }) == "");
  CHECK(fault_of([](options& o) { o.mesh = "x", o.exchange = "tree"; }) == "");
  CHECK(fault_of([](options& o) { o.schedules = {"1f1b:lr=fast"}; }) == "");
}

TEST_CASE("a program's own defaults are its defaults", "[effects]") {
  const program_about simulation{.name = "simulate",
                                 .description = "",
                                 .trains = false,
                                 .defaults = {.schedules = {"all"}, .steps = 1}};
  CHECK(fault_of([](options&) {}, simulation) == "");
  // No optimizer has this: the schedule says so.
  CHECK(fault_of([](options& o) { o.schedules = {"1f1b:momentum=1"}; }, simulation)
        == "");
  CHECK_THAT(fault_of([](options& o) { o.exchange = "tree"; }, simulation),
             StartsWith("--exchange"));
}
