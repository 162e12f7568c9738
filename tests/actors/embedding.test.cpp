// Trainings within programs that are not ours: jobs, actor systems, layers.

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

using namespace troupe;
using namespace embedded;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

/// y = x w^T + b by the definition, in loops.
class plain_linear : public own_layer {
public:
  plain_linear(const std::string& name, std::int64_t in, std::int64_t out)
    : own_layer({{name + ".weight",
                  {out, in},
                  beginning::uniform,
                  1 / std::sqrt(static_cast<double>(in))},
                 {name + ".bias",
                  {out},
                  beginning::uniform,
                  1 / std::sqrt(static_cast<double>(in))}},
                in, out) {}

  room room_for(std::int64_t samples) const override {
    return {.saved = samples * inputs(), .kept = samples * outputs()};
  }
  double operations() const override {
    return 2.0 * static_cast<double>(inputs() * outputs());
  }

  void forward(const own_pass& p) const override {
    std::memcpy(p.saved, p.x,
                static_cast<std::size_t>(p.samples * inputs()) * sizeof(float));
    for (std::int64_t r = 0; r < p.samples; ++r)
      for (std::int64_t o = 0; o < outputs(); ++o) {
        double sum = p.parameters[1][o];
        for (std::int64_t i = 0; i < inputs(); ++i)
          sum += static_cast<double>(p.x[r * inputs() + i])
                 * p.parameters[0][o * inputs() + i];
        p.y[r * outputs() + o] = static_cast<float>(sum);
      }
  }

  void input_gradient(const own_pass& p) const override {
    std::memcpy(p.kept, p.dy,
                static_cast<std::size_t>(p.samples * outputs()) * sizeof(float));
    for (std::int64_t r = 0; r < p.samples && p.dx != nullptr; ++r)
      for (std::int64_t i = 0; i < inputs(); ++i) {
        double sum = 0;
        for (std::int64_t o = 0; o < outputs(); ++o)
          sum += static_cast<double>(p.dy[r * outputs() + o])
                 * p.parameters[0][o * inputs() + i];
        p.dx[r * inputs() + i] = static_cast<float>(sum);
      }
  }

  void weight_gradient(const own_pass& p) const override {
    for (std::int64_t o = 0; o < outputs(); ++o) {
      float& bias = p.gradients[1][o];
      bias = p.adds ? bias : 0;
      for (std::int64_t i = 0; i < inputs(); ++i) {
        float& weight = p.gradients[0][o * inputs() + i];
        weight = p.adds ? weight : 0;
        for (std::int64_t r = 0; r < p.samples; ++r)
          weight += p.kept[r * outputs() + o] * p.saved[r * inputs() + i];
      }
      for (std::int64_t r = 0; r < p.samples; ++r)
        bias += p.kept[r * outputs() + o];
    }
  }
};

/// A layer that fails in its third forward.
class failing_layer : public plain_linear {
public:
  using plain_linear::plain_linear;
  void forward(const own_pass& p) const override {
    if (++calls_ == 3)
      throw std::runtime_error("the third forward fails");
    plain_linear::forward(p);
  }

private:
  mutable std::atomic<int> calls_ = 0;
};

/// Tells in its forward how many actors live in a system.
class counting_layer : public plain_linear {
public:
  counting_layer(caf::actor_system& where, std::atomic<std::size_t>& most)
    : plain_linear("b", 8, 8), where_(where), most_(most) {}
  void forward(const own_pass& p) const override {
    most_ = std::max(most_.load(), where_.registry().running());
    plain_linear::forward(p);
  }

private:
  caf::actor_system& where_;
  std::atomic<std::size_t>& most_;
};

training_job images_job(std::vector<std::shared_ptr<const network_layer>> layers) {
  auto job = small_job();
  job.model = own_network{.layers = std::move(layers)};
  job.data = *open_data("synthetic", {.model = "mlp"}, 5);
  return job;
}

} // namespace

TEST_CASE("a job trains what a plain loop trains, to the bit", "[embedding]") {
  const auto how = GENERATE(gpipe(), one_f_one_b());
  auto job = small_job(how);
  const auto result = finished(job);
  const auto whole = *make_network<float>(small_gpt);
  const auto plain = train_plainly({.whole = whole,
                                    .first_layers = *cut(whole, 3, {}),
                                    .data = *job.data,
                                    .batches = {8, 4},
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
            == std::vector<float>(first, first + p.values()));
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
  system.await_all_actors_done(); // all of them have gone
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
  CHECK(result->how == ending::failed);
  CHECK(result->failure == "stage 1: the third forward fails");
  CHECK(result->parameters.empty());
  system.await_all_actors_done();
  CHECK(system.registry().running() == 0);
}

TEST_CASE("layers of one's own learn what ours do", "[embedding]") {
  const auto how = GENERATE(one_f_one_b(), pipedream(), chimera());
  auto ours = images_job({linear("a", 28 * 28, 12, true), linear("b", 12, 9),
                          linear("c", 9, 8), linear("d", 8, 10)});
  ours.how = how;
  ours.stages = how.name == "chimera" ? 4 : 3;
  auto own = ours;
  own.model = own_network{.layers = {linear("a", 28 * 28, 12, true),
                                     std::make_shared<plain_linear>("b", 12, 9),
                                     std::make_shared<plain_linear>("c", 9, 8),
                                     linear("d", 8, 10)}};
  const auto a = finished(ours), b = finished(own);
  REQUIRE(a.loss.size() == b.loss.size());
  for (std::size_t i = 0; i < a.loss.size(); ++i)
    CHECK(b.loss[i] == Approx(a.loss[i]).epsilon(1e-5));
  REQUIRE(a.parameters.size() == b.parameters.size());
  for (const auto& [name, values] : a.parameters)
    for (std::size_t i = 0; i < values.size(); ++i)
      REQUIRE(b.parameters.at(name)[i] == Approx(values[i]).margin(2e-4));
}

TEST_CASE("a first layer of one's own has no input gradient to write", "[embedding]") {
  const auto job =
    images_job({std::make_shared<plain_linear>("a", 28 * 28, 8), linear("b", 8, 8),
                std::make_shared<plain_linear>("c", 8, 10)});
  const auto result = finished(job);
  CHECK(result.loss.back() < result.loss.front());
}

TEST_CASE("layers that do not fit together are refused with their numbers",
          "[embedding]") {
  CHECK(refusal_of(images_job({linear("a", 784, 8), linear("b", 9, 10)}))
        == "layer 1 takes 9 values a sample, but layer 0 gives 8");
  CHECK_THAT(refusal_of(images_job({linear("a", 784, 8), linear("a", 8, 10)})),
             ContainsSubstring("layer 0 and layer 1 both have a parameter called "
                               "'a.weight'"));
  CHECK_THAT(refusal_of(images_job({linear("a", 784, 10)})),
             ContainsSubstring("at most 1 stages"));
  CHECK_THAT(refusal_of(images_job({})), ContainsSubstring("at least one layer"));
  auto uneven =
    images_job({linear("a", 784, 8), linear("b", 8, 8), linear("c", 8, 10)});
  std::get<own_network>(uneven.model).predictions = 3;
  CHECK_THAT(refusal_of(uneven), ContainsSubstring("3 predictions"));
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
             ContainsSubstring("3 data replicas cannot share 4 microbatches"));
  CHECK_THAT(wrong([](auto& j) {
               j.replicas = 2;
               j.exchange = "no-such";
             }),
             ContainsSubstring("no-such"));
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

TEST_CASE("what was trained is saved, and a job begins with it", "[embedding]") {
  const temporary_folder folder;
  const auto file = folder.path() / "mine.safetensors";
  auto job = small_job();
  const auto first = finished(job);
  CHECK(save(first, job, file) == "");
  auto again = job;
  again.begin = file;
  again.optimizer.rate = 1e-30; // nothing moves that fp32 could hold
  const auto second = finished(again);
  for (const auto& [name, values] : first.parameters) {
    REQUIRE(second.parameters.at(name).size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      REQUIRE(second.parameters.at(name)[i] == Approx(values[i]).margin(1e-12));
  }
  auto other = job;
  other.model = model_options{"gpt", 2, 8, 2, 4, 11};
  auto missing = first;
  missing.parameters.erase(missing.parameters.begin());
  CHECK_THAT(save(missing, job, file), ContainsSubstring("is missing"));
  CHECK(save(training_result{}, job, file).starts_with("there are no parameters"));
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

TEST_CASE("a job evaluates on what is held out", "[embedding]") {
  auto job =
    images_job({linear("a", 784, 8, true), linear("b", 8, 8), linear("c", 8, 10)});
  job.held_out = 32;
  const auto result = finished(job);
  REQUIRE(result.accuracy);
  CHECK((*result.accuracy >= 0 && *result.accuracy <= 1));
  CHECK(result.held_out_loss.value() > 0);
}
