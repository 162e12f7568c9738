// SPDX-License-Identifier: BSD-3-Clause
// Trainings within other programs: jobs, actor systems, layers.

#include "actors/embedding/training.hpp"
#include "models/network.hpp"
#include "models/plain_loop.hpp"
#include "tests/actors/embedded.hpp"
#include "tests/temporary_folder.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

namespace troupe::embedding_test {

using namespace embedded;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A layer that fails in its third forward.
class failing_layer : public plain_linear {
public:
  using plain_linear::plain_linear;
  void forward(const user_pass& p) const override {
    if (++calls_ == 3)
      throw std::runtime_error("the third forward fails");
    plain_linear::forward(p);
  }

private:
  mutable std::atomic<int> calls_ = 0;
};

/// A layer whose forward counts the actors that live in a system.
class counting_layer : public plain_linear {
public:
  counting_layer(caf::actor_system& where, std::atomic<std::size_t>& most)
    : plain_linear("b", 8, 8), where_(where), most_(most) {}
  void forward(const user_pass& p) const override {
    most_ = std::max(most_.load(), where_.registry().running());
    plain_linear::forward(p);
  }

private:
  caf::actor_system& where_;
  std::atomic<std::size_t>& most_;
};

} // namespace

TEST_CASE("a job trains what a plain loop trains, to the bit", "[embedding]") {
  auto how = GENERATE(gpipe(), one_f_one_b());
  how.recomputes = GENERATE(recomputation::none, recomputation::ahead);
  auto job = small_job(how);
  job.uneven =
    GENERATE(uneven_microbatches{},
             uneven_microbatches{.samples = {3, 1, 1, 3}, .lengths = {2, 4}});
  job.recomputed_units = 1;
  const auto result = finished(job);
  const auto whole = *make_network<float>(small_gpt);
  const auto plain = train_plainly(
    {.whole = whole,
     .first_layers = *cut(whole, 3, {}),
     .data = *job.data,
     .batches = {8, 4, 0, std::make_shared<const uneven_microbatches>(job.uneven)},
     .steps = 3,
     .optimizer = job.optimizer,
     .weights = initial_weights(whole, 3)});
  CHECK(result.loss == plain.loss);
  CHECK(result.samples == 24);
  std::size_t seen = 0;
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : whole.layers[l]->parameters()) {
      const auto first = plain.parameters[l].begin() + p.offset;
      CHECK(result.parameters.at(p.name)
            == trained_parameter{p.dims, {first, first + p.values()}});
      ++seen;
    }
  CHECK(result.parameters.size() == seen);
}

TEST_CASE("in a system that is there already trainings have the same bits",
          "[embedding]") {
  auto job = small_job();
  const auto alone = finished(job);
  caf::actor_system_config config;
  config.set("scheduler.max-threads", 2);
  caf::actor_system system{config};
  job.system = &system;
  for (int round = 0; round < 5; ++round) {
    const auto guest = finished(job);
    CHECK(guest.loss == alone.loss);
    CHECK(guest.parameters == alone.parameters);
  }
  std::thread other{[&] { CHECK(finished(job).loss == alone.loss); }};
  CHECK(finished(job).loss == alone.loss); // two at once
  other.join();
  system.await_all_actors_done(); // all actors have ended
  CHECK(system.registry().running() == 0);
}

TEST_CASE("a run's actors live in the system that its job names", "[embedding]") {
  caf::actor_system_config config;
  caf::actor_system system{config};
  std::atomic<std::size_t> most = 0;
  auto job =
    images_job({linear("a", 28 * 28, 8), std::make_shared<counting_layer>(system, most),
                linear("c", 8, 10)});
  (void)finished(job);
  CHECK(most == 0);
  job.system = &system;
  (void)finished(job);
  CHECK(most >= 11); // three of each stage, data source, coordinator
}

TEST_CASE("a training that fails in a system of others leaves nobody there",
          "[embedding]") {
  caf::actor_system_config config;
  caf::actor_system system{config};
  auto job =
    images_job({linear("a", 28 * 28, 8, true),
                std::make_shared<failing_layer>("b", 8, 8), linear("c", 8, 10)});
  job.system = &system;
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  CHECK(result->failure == "stage 1: the third forward fails");
  CHECK(result->parameters.empty());
  system.await_all_actors_done();
  CHECK(system.registry().running() == 0);
}

TEST_CASE("a job that cannot be is refused in one sentence", "[embedding]") {
  const auto wrong = [](auto change) {
    auto job = small_job();
    change(job);
    return refusal_of(job);
  };
  CHECK_THAT(wrong([](auto& j) { j.data = nullptr; }), ContainsSubstring("needs data"));
  CHECK_THAT(wrong([](auto& j) { j.steps = 0; }), ContainsSubstring("at least 1"));
  CHECK_THAT(wrong([](auto& j) { j.batch = 2; }), ContainsSubstring("microbatches"));
  CHECK_THAT(wrong([](auto& j) { j.replicas = 3; }),
             ContainsSubstring("a multiple of replicas, 3, is allowed"));
  CHECK_THAT(wrong([](auto& j) {
               j.replicas = 2;
               j.exchange = "no-such";
             }),
             ContainsSubstring("no-such"));
  CHECK_THAT(wrong([](auto& j) { j.exchange = "ring"; }),
             ContainsSubstring("one data replica exchanges no gradients"));
  CHECK_THAT(wrong([](auto& j) { j.optimizer.epsilon = 0; }), ContainsSubstring("eps"));
  CHECK_THAT(wrong([](auto& j) { j.optimizer.rate = std::nan(""); }),
             ContainsSubstring("lr nan is not allowed"));
  CHECK_THAT(wrong([](auto& j) { j.optimizer.beta2 = 1; }), ContainsSubstring("beta2"));
  CHECK_THAT(wrong([](auto& j) { j.pipeline_schedule = {}; }),
             ContainsSubstring("needs a name"));
  CHECK_THAT(wrong([](auto& j) { j.pipeline_schedule = ampnet(0); }),
             ContainsSubstring("max_active_keys above 0"));
  CHECK_THAT(wrong([](auto& j) { j.stages = 2147483647; }),
             ContainsSubstring("at most 4 stages"));
  CHECK_THAT(wrong([](auto& j) { j.split = {1, 1, 1}; }), ContainsSubstring("split"));
  CHECK_THAT(wrong([](auto& j) { j.begin = "/no/such/file"; }),
             ContainsSubstring("/no/such/file"));
}

TEST_CASE("a schedule of one's own that cannot work is refused with its drawing",
          "[embedding]") {
  auto job =
    small_job({.name = "mine",
               .order = [](op what, int stage, int k, const shape&) -> std::int64_t {
                 return what == op::forward ? 100 + k + stage : k + stage;
               }});
  const auto why = refusal_of(job);
  CHECK_THAT(why, ContainsSubstring("mine: ") && ContainsSubstring("rank 0"));
}

TEST_CASE("jobs on meshes are proved, and train what one device trains",
          "[embedding]") {
  auto job = small_job(GENERATE(one_f_one_b(), two_bw()));
  job.verify = true;
  const auto alone = finished(job);
  const auto holds = [](const training_result& result, const std::string& name) {
    return std::ranges::any_of(result.proofs, [&](const training_proof& p) {
      return p.name == name && p.holds && p.detail == "equal to the bit";
    });
  };
  CHECK(holds(alone, "replay"));
  CHECK(alone.parameters.at("transformer.wte.weight").dims
        == std::vector<std::int64_t>{11, 8});
  job.stages = 2;
  job.tensor = 2;
  job.sequence_parallel = GENERATE(false, true);
  job.replicas = 2;
  job.exchange = "zero1";
  job.compress = GENERATE("", "bf16");
  const auto result = finished(job);
  CHECK(result.proofs.size() >= 2);
  CHECK(std::ranges::all_of(result.proofs, &training_proof::holds));
  CHECK(result.loss.back() == Approx(alone.loss.back()).margin(0.01));
  CHECK((result.loss == alone.loss) == false); // sums have another order
}

TEST_CASE("a mesh that a job cannot have is refused", "[embedding]") {
  auto job = small_job();
  job.tensor = 3;
  CHECK_THAT(refusal_of(job), ContainsSubstring("heads"));
  job.tensor = 0;
  CHECK(refusal_of(job) == "tensor of a job is 0: at least 1 is allowed");
  job.tensor = 1;
  job.compress = "bf16";
  CHECK_THAT(refusal_of(job), ContainsSubstring("one data replica exchanges no"));
  job.replicas = 2;
  job.compress = "bf15";
  CHECK_THAT(refusal_of(job), ContainsSubstring("there are none, bf16"));
  job.compress = "bf16";
  job.exchange = "server:async";
  CHECK_THAT(refusal_of(job), ContainsSubstring("sums none"));
  job.compress = {};
  job.exchange = "hogwild";
  job.verify = true;
  CHECK_THAT(refusal_of(job), ContainsSubstring("say --clock virtual"));
  auto images =
    images_job({linear("a", 784, 8), linear("b", 8, 8), linear("c", 8, 10)});
  images.tensor = 2;
  CHECK_THAT(refusal_of(images), ContainsSubstring("set both to 1 for a user_network"));
}

TEST_CASE("layers and schedules of one's own are proved", "[embedding]") {
  auto job = images_job({std::make_shared<plain_linear>("a", 784, 8),
                         std::make_shared<plain_linear>("b", 8, 8),
                         std::make_shared<plain_linear>("c", 8, 10)});
  job.verify = true;
  const auto result = finished(job);
  CHECK(result.proofs.size() >= 2);
  CHECK(std::ranges::all_of(result.proofs, &training_proof::holds));
}

TEST_CASE("what was trained is saved, and a job begins with it", "[embedding]") {
  const temporary_folder folder;
  const auto file = folder.path() / "mine.safetensors";
  auto job = small_job();
  const auto first = finished(job);
  CHECK(save(first, job, file) == "");
  auto again = job;
  again.begin = file;
  again.optimizer.rate = 1e-30; // nothing moves by as much as fp32 can hold
  const auto second = finished(again);
  for (const auto& [name, saved] : first.parameters) {
    REQUIRE(second.parameters.at(name).dims == saved.dims);
    for (std::size_t i = 0; i < saved.values.size(); ++i)
      REQUIRE(second.parameters.at(name).values[i]
              == Approx(saved.values[i]).margin(1e-12));
  }
  auto other = job;
  other.model = model_options{"gpt", 2, 8, 2, 4, 11};
  auto missing = first;
  missing.parameters.erase(missing.parameters.begin());
  CHECK_THAT(save(missing, job, file), ContainsSubstring("is missing"));
  CHECK(save(training_result{}, job, file).starts_with("no parameters can be saved"));
}

TEST_CASE("weights that the last update has poisoned are not handed over",
          "[embedding]") {
  auto job = small_job();
  job.steps = 1;
  job.optimizer.rate = 1e300;
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  CHECK_THAT(result->failure, ContainsSubstring("the last update has made"));
  CHECK(result->parameters.empty());
}

TEST_CASE("what ran is drawn if a job asks for it", "[embedding]") {
  auto job = small_job(gpipe());
  job.virtual_time = true;
  job.stages = 2;
  job.steps = 1;
  CHECK(finished(job).picture.empty());
  job.draws = true;
  const auto picture = finished(job).picture;
  CHECK_THAT(picture, ContainsSubstring("rank 0  F0") && ContainsSubstring("B3"));
}

TEST_CASE("a job tells how far it has come, and ends early when it is asked",
          "[embedding]") {
  auto job = small_job();
  job.steps = 1'000'000;
  std::atomic<bool> enough = false;
  std::int64_t told = 0;
  const auto result = train(job, {.report =
                                    [&](const progress& p) {
                                      told = p.samples;
                                      enough = p.samples > 0;
                                    },
                                  .interrupted = &enough});
  REQUIRE(result);
  CHECK(result->outcome == ending::interrupted);
  CHECK(told > 0);
  CHECK(result->samples + job.batch > told); // whole minibatches
  CHECK(result->samples < 8'000'000);
  CHECK_FALSE(result->parameters.empty());
}

TEST_CASE("a job tells each loss once, in order", "[embedding]") {
  auto job = small_job();
  job.steps = 300;
  job.virtual_time = GENERATE(false, true);
  std::vector<double> told;
  std::vector<std::int64_t> samples;
  const auto result = train(job, {.report = [&](const progress& p) {
                              for (const auto& one : p.losses) {
                                told.push_back(one.loss);
                                samples.push_back(one.samples);
                              }
                            }});
  REQUIRE(result);
  CHECK(told.size() == 300);
  CHECK(told == result->loss);
  CHECK(samples == result->loss_samples);
}

TEST_CASE("samples that a model does not take are refused, and found while it trains",
          "[embedding]") {
  auto job = small_job();
  auto longer = small_gpt;
  longer.length = 5;
  job.data = *open_data("synthetic", longer, 5);
  CHECK(refusal_of(job)
        == "a sample of the data is 5 tokens and 5 labels, but the model takes 4 "
           "tokens and 4 labels");
  job.data = *open_data("synthetic", {.model = "mlp"}, 5);
  CHECK_THAT(refusal_of(job), ContainsSubstring("784 pixels and 1 label,"));

  struct odd_labels : data_set {
    void training(std::int64_t index, const sample_view& to) const override {
      to.labels[0] = index == 9 ? 10 : 3;
    }
    std::int64_t evaluation_size() const override { return 4; }
    void evaluation(std::int64_t, const sample_view& to) const override {
      to.labels[0] = -1;
    }
    std::string description() const override { return "odd labels"; }
  };
  auto images =
    images_job({linear("a", 784, 8), linear("b", 8, 8), linear("c", 8, 10)});
  images.data = std::make_shared<odd_labels>();
  const auto wrong = train(images);
  REQUIRE(wrong);
  CHECK(wrong->outcome == ending::failed);
  CHECK_THAT(wrong->failure,
             ContainsSubstring("sample 9 has label 10: the model allows 0 to 9"));

  images.steps = 1;
  images.held_out = 4;
  const auto late = train(images); // the training is whole
  REQUIRE(late);
  CHECK(late->outcome == ending::failed);
  CHECK_THAT(late->failure, ContainsSubstring("evaluation: sample 0 has label -1"));
  CHECK(late->parameters.size() == 6);
}

TEST_CASE("a job evaluates on what is held out", "[embedding]") {
  auto job =
    images_job({linear("a", 784, 8, true), linear("b", 8, 8), linear("c", 8, 10)});
  job.held_out = 32;
  const auto result = finished(job);
  REQUIRE(result.accuracy);
  CHECK((*result.accuracy >= 0 && *result.accuracy <= 1));
  CHECK(result.held_out_loss.value() > 0);
}

} // namespace troupe::embedding_test
