// Trainings within programs that are not ours: jobs, layers, meetings and actors of the
// user's own.

#include "actors/embedding/training.hpp"
#include "actors/mail/relay.hpp"
#include "actors/meetings/own_meeting.hpp"
#include "models/data/open_data.hpp"
#include "models/layers/linear.hpp"
#include "models/own_network.hpp"
#include "models/plain_loop.hpp"
#include "schedules/catalog/catalog.hpp"
#include "tests/temporary_folder.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

using namespace troupe;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

const model_options small_gpt{"gpt", 4, 8, 2, 4, 11};

training_job small_job(const schedule& how = one_f_one_b()) {
  training_job job{
    .model = small_gpt, .data = *open_data("synthetic", small_gpt, 5), .how = how};
  job.stages = 3;
  job.microbatches = 4;
  job.steps = 3;
  job.batch = 8;
  job.optimizer.rate = 0.01;
  job.seed = 3;
  job.threads = 2;
  return job;
}

training_result finished(const training_job& job) {
  auto result = train(job);
  INFO((result ? result->failure : result.error()));
  REQUIRE(result);
  REQUIRE(result->how == ending::finished);
  return *result;
}

std::string refusal_of(const training_job& job) {
  const auto result = train(job);
  return result ? "" : result.error();
}

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

training_job images_job(std::vector<std::shared_ptr<const network_layer>> layers) {
  auto job = small_job();
  job.model = own_network{.layers = std::move(layers)};
  job.data = *open_data("synthetic", {.model = "mlp"}, 5);
  return job;
}

/// All data replicas send all others all they have; sums go in the replicas' order.
class sum_of_all : public own_exchange {
public:
  explicit sum_of_all(const exchange_place& where) : where_(where) {}

  std::vector<exchange_letter>
  begin(std::span<const std::span<float>> gradients) override {
    gradients_.assign(gradients.begin(), gradients.end());
    parts_.assign(static_cast<std::size_t>(where_.replicas), {});
    std::vector<std::byte> all;
    for (const auto bucket : gradients_)
      all.insert(all.end(), std::as_bytes(bucket).begin(), std::as_bytes(bucket).end());
    std::vector<exchange_letter> result;
    for (int r = 0; r < where_.replicas; ++r)
      if (r != where_.replica)
        result.push_back({r, all});
    parts_[static_cast<std::size_t>(where_.replica)] = std::move(all);
    come_ = 1;
    return result;
  }

  std::vector<exchange_letter> take(int from,
                                    std::span<const std::byte> what) override {
    parts_[static_cast<std::size_t>(from)].assign(what.begin(), what.end());
    if (++come_ == where_.replicas)
      add();
    return {};
  }

  bool over() const override { return come_ == where_.replicas; }

private:
  void add() {
    std::size_t at = 0;
    for (const auto bucket : gradients_)
      for (auto& value : bucket) {
        float sum = 0;
        for (std::size_t r = 0; r < parts_.size(); ++r) {
          float part = 0;
          std::memcpy(&part, parts_[r].data() + at, sizeof part);
          sum = r == 0 ? part : sum + part;
        }
        value = sum;
        at += sizeof value;
      }
  }

  exchange_place where_;
  std::vector<std::span<float>> gradients_;
  std::vector<std::vector<std::byte>> parts_;
  int come_ = 0;
};

/// Passes everything on, and counts it.
struct counts {
  std::atomic<int> activations = 0, gradients = 0;
};

std::shared_ptr<const own_relays> relays_that(std::shared_ptr<counts> all,
                                              int fails_at = -1) {
  return std::make_shared<own_relays>(
    own_relays{[=](caf::actor_system& system, const relay_place& where) {
      return system.spawn(
        [=](neighbour_actor::pointer self) -> neighbour_actor::behavior_type {
          return {[=](const activation& x) {
                    CHECK(x.header.stage == where.stage + 1);
                    ++all->activations;
                    self->send(where.above, x);
                  },
                  [=](const gradient& g) {
                    CHECK(g.header.stage == where.stage);
                    if (++all->gradients == fails_at)
                      throw std::runtime_error("a relay fails");
                    self->send(where.below, g);
                  }};
        });
    }});
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
  CHECK_THAT(wrong([](auto& j) {
               j.how = ampnet();
               j.replicas = 2;
               j.own_exchange = [](const exchange_place& p) {
                 return std::make_unique<sum_of_all>(p);
               };
             }),
             ContainsSubstring("ampnet"));
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

TEST_CASE("a meeting of one's own has the bits of the sum that it makes",
          "[embedding]") {
  const auto how = GENERATE(gpipe(), chimera(), two_bw());
  auto job = small_job(how);
  job.stages = 2;
  job.replicas = 2;
  job.virtual_time = GENERATE(false, true);
  job.optimizer.clip = GENERATE(0.0, 0.05);
  job.exchange = "naive"; // replica 0 sums in the replicas' order
  const auto summed = finished(job);
  job.own_exchange = [](const exchange_place& where) {
    return std::make_unique<sum_of_all>(where);
  };
  const auto own = finished(job);
  CHECK(own.loss == summed.loss);
  CHECK(own.parameters == summed.parameters);
  std::int64_t values = 0;
  for (const auto& [name, all] : own.parameters)
    values += std::ssize(all);
  CHECK(own.exchanged_bytes >= 2 * values * 4 * job.steps);
}

TEST_CASE("letters of an own meeting that come early wait for their update",
          "[embedding]") {
  run_plan plan;
  plan.sch = gpipe();
  plan.dims = {1, 2};
  plan.data = 2;
  plan.exchange = replica_exchange{.name = "own"};
  std::vector<std::string> told;
  struct noting : own_exchange {
    explicit noting(std::vector<std::string>& to) : told(to) {}
    std::vector<exchange_letter> begin(std::span<const std::span<float>>) override {
      told.push_back("begins");
      come = 0;
      return {{1, {std::byte{7}}}};
    }
    std::vector<exchange_letter> take(int from,
                                      std::span<const std::byte> what) override {
      told.push_back(std::to_string(from) + " says "
                     + std::to_string(std::to_integer<int>(what[0])));
      ++come;
      return {};
    }
    bool over() const override { return come == 2; }
    std::vector<std::string>& told;
    int come = 0;
  };
  plan.own_exchange = [&](const exchange_place& p) {
    CHECK((p.stage == 0 && p.replica == 0 && p.replicas == 2));
    return std::make_unique<noting>(told);
  };
  own_meeting meets{plan, {0, 0, 0}};
  const auto hear = [&](int update, int what) {
    mail::letter letter{.to = {},
                        .about = meeting_kind::own,
                        .what =
                          mail::own_letter{update, 1, {static_cast<std::byte>(what)}}};
    CHECK(meets.take(std::move(letter)).empty());
  };
  hear(0, 1); // before it has begun
  CHECK(told.empty());
  CHECK_FALSE(meets.over(0));
  const auto written = meets.begin(0);
  REQUIRE(written.size() == 1);
  CHECK((written[0].to.where == position{1, 0, 0} && written[0].bytes == 1));
  hear(2, 5); // of the update after the next
  hear(1, 3);
  CHECK_FALSE(meets.over(0));
  hear(0, 2);
  CHECK(meets.over(0));
  meets.next_update();
  CHECK_FALSE(meets.over(0));
  (void)meets.begin(0);
  hear(1, 4);
  CHECK(meets.over(0));
  meets.next_update();
  (void)meets.begin(0);
  hear(2, 6);
  CHECK(told
        == std::vector<std::string>{"begins", "1 says 1", "1 says 2", "begins",
                                    "1 says 3", "1 says 4", "begins", "1 says 5",
                                    "1 says 6"});
}

TEST_CASE("an own meeting that fails, or never ends, ends the run in words",
          "[embedding]") {
  struct odd : own_exchange {
    explicit odd(bool fails) : fails_(fails) {}
    std::vector<exchange_letter> begin(std::span<const std::span<float>>) override {
      if (fails_)
        return {{5, {}}};
      return {};
    }
    std::vector<exchange_letter> take(int, std::span<const std::byte>) override {
      return {};
    }
    bool over() const override { return false; }
    std::string waits_for() const override { return "a word that nobody says"; }
    bool fails_;
  };
  auto job = small_job();
  job.replicas = 2;
  job.virtual_time = true;
  const bool fails = GENERATE(true, false);
  job.own_exchange = [=](const exchange_place&) {
    return std::make_unique<odd>(fails);
  };
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->how == ending::failed);
  CHECK_THAT(result->failure, ContainsSubstring(fails ? "writes to data replica 5"
                                                      : "a word that nobody says"));
}

TEST_CASE("actors between stages see all that passes, and change no bit by themselves",
          "[embedding]") {
  auto job = small_job(GENERATE(one_f_one_b(), chimera(), pipedream()));
  job.stages = 4;
  job.virtual_time = GENERATE(false, true);
  job.replicas = GENERATE(1, 2);
  const auto alone = finished(job);
  const auto seen = std::make_shared<counts>();
  job.relays = relays_that(seen);
  const auto result = finished(job);
  CHECK(result.loss == alone.loss);
  CHECK(result.parameters == alone.parameters);
  CHECK(seen->activations == 4 * 3 * 3); // microbatches, batches, boundaries
  CHECK(seen->gradients == 4 * 3 * 3);
}

TEST_CASE("an actor between stages that fails ends the run", "[embedding]") {
  auto job = small_job();
  job.virtual_time = GENERATE(false, true);
  job.relays = relays_that(std::make_shared<counts>(), 3);
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->how == ending::failed);
  CHECK_FALSE(result->failure.empty());
  job.relays = std::make_shared<own_relays>(own_relays{
    [](caf::actor_system&, const relay_place&) { return neighbour_actor{}; }});
  CHECK_THROWS_AS(train(job), std::invalid_argument);
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

TEST_CASE("a job evaluates on what is held out", "[embedding]") {
  auto job =
    images_job({linear("a", 784, 8, true), linear("b", 8, 8), linear("c", 8, 10)});
  job.held_out = 32;
  const auto result = finished(job);
  REQUIRE(result.accuracy);
  CHECK((*result.accuracy >= 0 && *result.accuracy <= 1));
  CHECK(result.held_out_loss.value() > 0);
}
