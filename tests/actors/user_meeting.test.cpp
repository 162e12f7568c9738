// SPDX-License-Identifier: BSD-3-Clause
// Meetings between data replicas that a user defines.

#include "actors/meetings/user_meeting.hpp"

#include "actors/mail/relay.hpp"
#include "tests/actors/embedded.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <cstring>
#include <memory>

namespace troupe::own_meeting_test {

using namespace embedded;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A user's exchange in which every data replica sends all its gradients to all others;
/// sums are in the order of replicas.
class sum_of_all : public user_exchange {
public:
  explicit sum_of_all(const exchange_member& where) : where_(where) {}

  std::vector<exchange_message>
  begin(std::span<const std::span<float>> gradients) override {
    gradients_.assign(gradients.begin(), gradients.end());
    parts_.assign(static_cast<std::size_t>(where_.replicas), {});
    std::vector<std::byte> all;
    for (const auto bucket : gradients_)
      all.insert(all.end(), std::as_bytes(bucket).begin(), std::as_bytes(bucket).end());
    std::vector<exchange_message> result;
    for (int r = 0; r < where_.replicas; ++r)
      if (r != where_.replica)
        result.push_back({r, all});
    parts_[static_cast<std::size_t>(where_.replica)] = std::move(all);
    come_ = 1;
    return result;
  }

  std::vector<exchange_message> receive(int from,
                                        std::span<const std::byte> what) override {
    parts_[static_cast<std::size_t>(from)].assign(what.begin(), what.end());
    if (++come_ == where_.replicas)
      add();
    return {};
  }

  bool is_done() const override { return come_ == where_.replicas; }

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

  exchange_member where_;
  std::vector<std::span<float>> gradients_;
  std::vector<std::vector<std::byte>> parts_;
  int come_ = 0;
};

} // namespace

TEST_CASE("a meeting of one's own has the bits of the sum that it makes",
          "[embedding]") {
  const bool even = GENERATE(true, false);
  const auto how = GENERATE(gpipe(), chimera(), two_bw());
  auto job = small_job(how);
  job.stages = 2;
  job.replicas = 2;
  job.batch = even ? 8 : 11; // microbatches of two and three samples
  job.virtual_time = GENERATE(false, true);
  job.optimizer.clip = GENERATE(0.0, 0.05);
  job.exchange = "naive"; // replica 0 sums in the replicas' order
  const auto summed = finished(job);
  job.exchange = {};
  job.user_exchange = [](const exchange_member& where) {
    return std::make_unique<sum_of_all>(where);
  };
  const auto own = finished(job);
  CHECK(own.loss == summed.loss);
  CHECK(own.parameters == summed.parameters);
  std::int64_t values = 0;
  for (const auto& [name, all] : own.parameters)
    values += std::ssize(all.values);
  CHECK(own.exchanged_bytes >= 2 * values * 4 * job.steps);
}

TEST_CASE("letters of an own meeting that come early wait for their update",
          "[embedding]") {
  run_plan plan;
  plan.sch = gpipe();
  plan.dims = {1, 2};
  plan.mesh[axis::data] = 2;
  plan.exchange = replica_exchange{.name = "own"};
  std::vector<std::string> told;
  struct noting : user_exchange {
    explicit noting(std::vector<std::string>& to) : told(to) {}
    std::vector<exchange_message> begin(std::span<const std::span<float>>) override {
      told.push_back("begins");
      come = 0;
      return {{1, {std::byte{7}}}};
    }
    std::vector<exchange_message> receive(int from,
                                          std::span<const std::byte> what) override {
      told.push_back(std::to_string(from) + " says "
                     + std::to_string(std::to_integer<int>(what[0])));
      ++come;
      return {};
    }
    bool is_done() const override { return come == 2; }
    std::vector<std::string>& told;
    int come = 0;
  };
  plan.user_exchange = [&](const exchange_member& p) {
    CHECK((p.stage == 0 && p.replica == 0 && p.replicas == 2));
    return std::make_unique<noting>(told);
  };
  user_meeting meets{plan, {0, 0, 0}};
  const auto hear = [&](int update, int what) {
    mail::meeting_message letter{
      .to = {},
      .meeting = meeting_kind::user,
      .body = mail::user_message{update, 1, {static_cast<std::byte>(what)}}};
    CHECK(meets.receive(std::move(letter)).empty());
  };
  hear(0, 1); // before the begin
  CHECK(told.empty());
  CHECK_FALSE(meets.is_done(0));
  const auto written = meets.begin(0);
  REQUIRE(written.size() == 1);
  CHECK((written[0].to.where == position{1, 0, 0} && written[0].bytes == 1));
  hear(2, 5); // of the update after the next
  hear(1, 3);
  CHECK_FALSE(meets.is_done(0));
  hear(0, 2);
  CHECK(meets.is_done(0));
  meets.next_update();
  CHECK_FALSE(meets.is_done(0));
  (void)meets.begin(0);
  hear(1, 4);
  CHECK(meets.is_done(0));
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
  struct odd : user_exchange {
    explicit odd(bool fails) : fails_(fails) {}
    std::vector<exchange_message> begin(std::span<const std::span<float>>) override {
      if (fails_)
        return {{5, {}}};
      return {};
    }
    std::vector<exchange_message> receive(int, std::span<const std::byte>) override {
      return {};
    }
    bool is_done() const override { return false; }
    std::string waits_for() const override { return "a word that nobody says"; }
    bool fails_;
  };
  auto job = small_job();
  job.replicas = 2;
  job.virtual_time = GENERATE(true, false);
  job.stall_timeout = std::chrono::milliseconds{200};
  const bool fails = GENERATE(true, false);
  job.user_exchange = [=](const exchange_member&) {
    return std::make_unique<odd>(fails);
  };
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  if (fails) {
    CHECK_THAT(result->failure,
               ContainsSubstring("user_exchange sends to data replica 5"));
    return;
  }
  const auto at = [&](const std::string& text) { return result->failure.find(text); };
  for (int stage = 0; stage < job.stages; ++stage)
    for (int replica = 0; replica < 2; ++replica)
      CHECK(at("the user_exchange of stage " + std::to_string(stage)
               + " in data replica " + std::to_string(replica)
               + " has begun and still waits for a word that nobody says\n")
            < at("therefore actors wait:\n"));
}

TEST_CASE("a meeting of one's own has no place where nobody sums", "[embedding]") {
  auto job = small_job();
  job.replicas = 2;
  job.user_exchange = [](const exchange_member& p) {
    return std::make_unique<sum_of_all>(p);
  };
  const auto wrong = [&](auto change) {
    auto other = job;
    change(other);
    return refusal_of(other);
  };
  CHECK_THAT(wrong([](auto& j) { j.pipeline_schedule = ampnet(); }),
             ContainsSubstring("ampnet"));
  CHECK_THAT(wrong([](auto& j) { j.exchange = "zero3"; }),
             ContainsSubstring("or only exchange = 'zero3'"));
  CHECK_THAT(wrong([](auto& j) { j.replicas = 1; }),
             ContainsSubstring("one data replica exchanges no gradients"));
  CHECK_THAT(wrong([](auto& j) { std::get<model_options>(j.model).tied = true; }),
             ContainsSubstring("tied matrix") && !ContainsSubstring("expert"));
  CHECK_THAT(wrong([](auto& j) { std::get<model_options>(j.model).model = "moe"; }),
             ContainsSubstring("an expert of moe") && !ContainsSubstring("tied"));
}

TEST_CASE("objects of an own exchange are made before, by the caller, each once",
          "[embedding]") {
  auto job = small_job();
  job.replicas = 2;
  std::vector<std::pair<int, int>> made; // not safe in several threads
  job.user_exchange = [&](const exchange_member& p) {
    made.emplace_back(p.stage, p.replica);
    return std::make_unique<sum_of_all>(p);
  };
  (void)finished(job);
  CHECK(made
        == std::vector<std::pair<int, int>>{
          {0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}});
}

TEST_CASE("a place says where each parameter of its stage stands in the gradients",
          "[embedding]") {
  // Only a parameter's gradient changes the parameter: half of the gradients are set.
  struct by_name : sum_of_all {
    explicit by_name(const exchange_member& p) : sum_of_all(p), place(p) {}
    std::vector<exchange_message>
    begin(std::span<const std::span<float>> gradients) override {
      std::vector<int> taken(gradients.size());
      for (const auto& p : place.parameters) {
        const auto all = gradients[static_cast<std::size_t>(p.array)];
        REQUIRE(p.offset >= taken.at(static_cast<std::size_t>(p.array)));
        std::int64_t values = 1;
        for (const auto dim : p.dims)
          values *= dim;
        REQUIRE((p.values == values && p.offset + values <= std::ssize(all)));
        taken[static_cast<std::size_t>(p.array)] = static_cast<int>(p.offset + values);
        const float all_of_it = p.dims.size() == 2 ? 1 : 0;
        for (auto& value : all.subspan(static_cast<std::size_t>(p.offset),
                                       static_cast<std::size_t>(p.values)))
          value = all_of_it;
      }
      come = true;
      return {};
    }
    bool is_done() const override { return come; }
    exchange_member place;
    bool come = false;
  };
  auto job =
    images_job({linear("a", 28 * 28, 6), linear("b", 6, 5), linear("c", 5, 10)});
  job.stages = 2;
  job.split = {1, 2};
  job.replicas = 2;
  job.steps = 1;
  job.virtual_time = true;
  job.optimizer.name = "sgd";
  job.optimizer.rate = 1;
  std::vector<std::string> told;
  job.user_exchange = [&](const exchange_member& p) {
    for (const auto& one : p.parameters)
      told.push_back(std::to_string(p.stage) + " " + one.name);
    return std::make_unique<by_name>(p);
  };
  const auto end = finished(job);
  CHECK(told
        == std::vector<std::string>{"0 a.weight", "0 a.bias", "0 a.weight", "0 a.bias",
                                    "1 b.weight", "1 b.bias", "1 c.weight", "1 c.bias",
                                    "1 b.weight", "1 b.bias", "1 c.weight",
                                    "1 c.bias"});
  job.optimizer.rate = 0;
  const auto before = finished(job);
  for (const auto& [name, last] : end.parameters) {
    const auto& values = last.values;
    const float step = name.ends_with("weight") ? 1 / static_cast<float>(job.batch) : 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      REQUIRE(values[i] == before.parameters.at(name).values[i] - step);
  }
}

TEST_CASE("a training whose own meeting lets data replicas drift apart says so",
          "[embedding]") {
  struct alone : sum_of_all {
    using sum_of_all::sum_of_all;
    bool is_done() const override { return true; } // with local gradients unchanged
    std::vector<exchange_message> begin(std::span<const std::span<float>>) override {
      return {};
    }
  };
  auto job = small_job();
  job.replicas = 2;
  job.held_out = 4;
  job.virtual_time = GENERATE(true, false);
  job.user_exchange = [](const exchange_member& p) {
    return std::make_unique<alone>(p);
  };
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  CHECK(result->failure
        == "stage 0 (replica 1) ended with parameters that differ from replica 0's: a "
           "user_exchange must leave the same values in all data replicas");
  CHECK_FALSE(result->parameters.empty());
  CHECK_FALSE(result->held_out_loss);
}

TEST_CASE("who writes to an own meeting that is over ends the run", "[embedding]") {
  struct hasty : sum_of_all {
    using sum_of_all::sum_of_all;
    bool is_done() const override { return true; }
  };
  auto job = small_job();
  job.replicas = 2;
  job.virtual_time = true;
  job.user_exchange = [](const exchange_member& p) {
    return std::make_unique<hasty>(p);
  };
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  CHECK_THAT(result->failure,
             ContainsSubstring("for an update whose user_exchange has ended"));
}

} // namespace troupe::own_meeting_test
