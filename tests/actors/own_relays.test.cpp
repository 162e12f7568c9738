// SPDX-License-Identifier: BSD-3-Clause
// Actors of the user between stages.

#include "actors/mail/relay.hpp"
#include "tests/actors/embedded.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace troupe::own_relays_test {

using namespace embedded;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Messages that relays have passed on, and messages that reached the wrong relay.
/// Relays have threads, and Catch2's checks may run in one thread.
struct counts {
  std::atomic<int> activations = 0, gradients = 0, misplaced = 0;
};

std::shared_ptr<const user_relays> relays_that(std::shared_ptr<counts> all,
                                               int fails_at = -1, bool quits = false) {
  return std::make_shared<user_relays>(
    user_relays{[=](caf::actor_system& system, const relay_place& where) {
      return system.spawn([=](relay* self) -> neighbour_actor::behavior_type {
        return {[=](const activation& x) {
                  all->misplaced += x.header.stage != where.stage + 1;
                  ++all->activations;
                  self->send(where.above, x);
                },
                [=](const gradient& g) {
                  all->misplaced += g.header.stage != where.stage;
                  if (++all->gradients == fails_at && quits)
                    return self->quit();
                  if (all->gradients == fails_at)
                    throw std::runtime_error("a relay fails");
                  self->send(where.below, g);
                }};
      });
    }});
}

} // namespace

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
  CHECK(seen->misplaced == 0);
}

TEST_CASE("an actor between stages may still hold what it has sent on", "[embedding]") {
  auto job = small_job(GENERATE(gpipe(), one_f_one_b(), pipedream()));
  job.virtual_time = true;
  const auto alone = finished(job);
  // Each relay keeps a handle of the tensor last sent. So does a relay whose thread has
  // to wait between sending and the end of the handler.
  job.relays = std::make_shared<user_relays>(
    user_relays{[](caf::actor_system& system, const relay_place& where) {
      return system.spawn(
        [where](neighbour_actor::pointer self) -> neighbour_actor::behavior_type {
          const auto last = std::make_shared<buffer>();
          return {[=](const activation& x) {
                    *last = x.payload;
                    self->send(where.above, x);
                  },
                  [=](const gradient& g) {
                    *last = g.payload;
                    self->send(where.below, g);
                  }};
        });
    }});
  CHECK(finished(job).loss == alone.loss);
}

TEST_CASE("a proof that fails makes a job fail", "[embedding]") {
  auto job = small_job();
  job.verify = true;
  job.relays = std::make_shared<user_relays>(
    user_relays{[](caf::actor_system& system, const relay_place& where) {
      return system.spawn(
        [where](neighbour_actor::pointer self) -> neighbour_actor::behavior_type {
          return {[=](const activation& x) { self->send(where.above, x); },
                  [=](const gradient& g) {
                    g.payload.data()[0] *= 1.5F; // no proof knows this factor
                    self->send(where.below, g);
                  }};
        });
    }});
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  CHECK_THAT(result->failure, ContainsSubstring("verify: plain loop: "));
  CHECK(!result->proofs.at(0).holds);
  CHECK(!result->parameters.empty());
}

TEST_CASE("actors between stages live and fail in a system of others", "[embedding]") {
  caf::actor_system_config config;
  caf::actor_system system{config};
  auto job = small_job();
  const auto alone = finished(job);
  job.system = &system;
  const auto seen = std::make_shared<counts>();
  job.relays = relays_that(seen);
  CHECK(finished(job).loss == alone.loss);
  CHECK(seen->misplaced == 0);
  for (int at = 1; at < 12; at += 2) {
    job.relays = relays_that(std::make_shared<counts>(), at);
    const auto result = train(job);
    REQUIRE(result);
    CHECK(result->outcome == ending::failed);
  }
  system.await_all_actors_done();
  CHECK(system.registry().running() == 0);
}

TEST_CASE("an actor between stages that fails ends the run", "[embedding]") {
  auto job = small_job();
  job.virtual_time = GENERATE(false, true);
  const auto failure = [&] {
    const auto result = train(job);
    REQUIRE(result);
    CHECK(result->outcome == ending::failed);
    return result->failure;
  };
  const std::vector<std::string> places{"the relay between stage 0 and stage 1",
                                        "the relay between stage 1 and stage 2"};
  const auto is_of_either = [&](const std::string& what) {
    const auto text = failure();
    INFO(text);
    return text == places[0] + what || text == places[1] + what;
  };
  job.relays = relays_that(std::make_shared<counts>(), 3);
  CHECK(is_of_either(": a relay fails"));
  job.relays = relays_that(std::make_shared<counts>(), 3, true);
  CHECK(is_of_either(" quit before the run ended"));
}

TEST_CASE("who throws between stages and is no relay is named, with where the text is",
          "[embedding]") {
  auto job = small_job();
  job.virtual_time = GENERATE(false, true);
  job.relays = std::make_shared<user_relays>(
    user_relays{[](caf::actor_system& system, const relay_place& where) {
      return system.spawn(
        [=](neighbour_actor::pointer self) -> neighbour_actor::behavior_type {
          return {[=](const activation&) { throw std::runtime_error("a test throws"); },
                  [=](const gradient& g) { self->send(where.below, g); }};
        });
    }});
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  CHECK(result->failure
        == "the relay between stage 0 and stage 1 threw an exception that CAF printed "
           "on standard error, as only a troupe::relay reports exceptions to the run");
}

TEST_CASE("a maker of relays that throws, or makes none, ends the run in words",
          "[embedding]") {
  caf::actor_system_config config;
  caf::actor_system system{config};
  auto job = small_job();
  job.virtual_time = GENERATE(false, true);
  if (!job.virtual_time)
    job.system = GENERATE_REF(static_cast<caf::actor_system*>(nullptr), &system);
  const auto failure_by = [&](auto wrong) {
    const auto right = relays_that(std::make_shared<counts>());
    job.relays = std::make_shared<user_relays>(
      user_relays{[=](caf::actor_system& of, const relay_place& where) {
        return where.stage == 0 ? right->make(of, where) : wrong();
      }});
    const auto result = train(job);
    REQUIRE(result);
    CHECK(result->outcome == ending::failed);
    CHECK(result->parameters.empty());
    return result->failure;
  };
  const std::string maker = "the maker of the relay between stage 1 and stage 2: ";
  CHECK(failure_by([] { return neighbour_actor{}; }) == maker + "made nothing");
  CHECK(failure_by([]() -> neighbour_actor { throw std::runtime_error("no luck"); })
        == maker + "no luck");
  CHECK(failure_by([]() -> neighbour_actor { throw 7; })
        == maker + "an exception of unknown type");
  system.await_all_actors_done();
}

TEST_CASE("a relay that sends on what it was not given ends the run and says so",
          "[embedding]") {
  // Fails at the second activation or gradient between stage 1 and stage 2.
  const auto failure_by = [](bool forward, auto wrong) {
    auto job = small_job(gpipe());
    job.virtual_time = true;
    job.relays = std::make_shared<user_relays>(
      user_relays{[=](caf::actor_system& system, const relay_place& where) {
        return system.spawn(
          [=](neighbour_actor::pointer self) -> neighbour_actor::behavior_type {
            return {[=](const activation& x) {
                      if (forward && where.stage == 1 && x.header.microbatch == 1)
                        return wrong(self, where, x);
                      self->send(where.above, x);
                    },
                    [=](const gradient& g) {
                      if (!forward && where.stage == 1 && g.header.microbatch == 1)
                        return wrong(self, where, g);
                      self->send(where.below, g);
                    }};
          });
      }});
    const auto result = train(job);
    REQUIRE(result);
    CHECK(result->outcome == ending::failed);
    return result->failure;
  };
  const std::string place = "the relay between stage 1 and stage 2 ",
                    size = " (2 x 32 values)";
  const auto on = [](auto self, const relay_place& where, const auto& what) {
    if constexpr (std::is_same_v<std::decay_t<decltype(what)>, activation>)
      self->send(where.above, what);
    else
      self->send(where.below, what);
  };
  const auto changed = [=](auto change) {
    return [=](auto self, const relay_place& where, auto what) {
      change(what);
      on(self, where, what);
    };
  };
  const std::string order =
    " before: a relay keeps the order and the sizes of messages";
  const bool forward = GENERATE(true, false);
  const std::string kind = forward ? "activation" : "gradient",
                    to = forward ? "stage 2: " : "stage 1: ",
                    its = "the " + kind + " of microbatch ";
  CHECK(failure_by(forward, changed([](auto& what) { what.header.microbatch = 2; }))
        == to + place + "sent on " + its + "2" + size + ", but had received " + its
             + "1" + size + order);
  CHECK(failure_by(forward, changed([](auto& what) { what.header.samples = 1; }))
        == to + place + "sent on " + its + "1 (1 x 32 values), but had received " + its
             + "1" + size + order);
  CHECK(failure_by(forward,
                   [=](auto self, const relay_place& where, const auto& what) {
                     on(self, where, what);
                     on(self, where, what);
                   })
        == to + place + "sent on " + its + "1" + size
             + ", but had already sent every received " + kind
             + ": a relay sends each message once");
  CHECK(failure_by(forward, changed([](auto& what) { what.header.step = 7; }))
        == to + place + "sent on " + its + "1" + size
             + " with another header than was received");
  CHECK(failure_by(forward, changed([](auto& what) { what.payload = {}; }))
        == to + place + "sent on " + its + "1" + size
             + " with another payload than was received");
  CHECK(
    failure_by(forward,
               [](auto self, const relay_place& where, const auto& what) {
                 if constexpr (std::is_same_v<std::decay_t<decltype(what)>, activation>)
                   self->send(where.below, what);
                 else
                   self->send(where.above, what);
               })
    == (forward ? "stage 1: " + place
                    + "sent a message of stage 1 back to that stage: a relay sends "
                      "messages on to stage 2"
                : "stage 2: " + place
                    + "sent a message of stage 2 back to that stage: a relay sends "
                      "messages on to stage 1"));
}

TEST_CASE("a stall names the relay that has not sent on what it was given",
          "[embedding]") {
  auto job = small_job(gpipe());
  job.virtual_time = GENERATE(true, false);
  job.stall_timeout = std::chrono::milliseconds{200};
  const bool forward = GENERATE(true, false);
  job.relays = std::make_shared<user_relays>(
    user_relays{[=](caf::actor_system& system, const relay_place& where) {
      return system.spawn([=](relay* self) -> neighbour_actor::behavior_type {
        return {[=](const activation& x) {
                  if (!forward || where.stage != 1 || x.header.microbatch < 2)
                    self->send(where.above, x);
                },
                [=](const gradient& g) {
                  if (forward || where.stage != 0)
                    self->send(where.below, g);
                }};
      });
    }});
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  CHECK_THAT(
    result->failure,
    ContainsSubstring(
      forward
        ? "the relay between stage 1 and stage 2 received the activation of microbatch "
          "2 (2 x 32 values), and has not sent it on\ntherefore actors wait:\n"
        : "the relay between stage 0 and stage 1 received the gradient of microbatch 0 "
          "(2 x 32 values), and has not sent it on\ntherefore actors wait:\n")
      && !ContainsSubstring("no answer") && !ContainsSubstring("a cycle"));
}

TEST_CASE("what an actor between stages cannot do is told with what it can",
          "[embedding]") {
  auto job = small_job();
  job.relays = std::make_shared<user_relays>(
    user_relays{[=](caf::actor_system& system, const relay_place& where) {
      return system.spawn([=](relay* self) -> neighbour_actor::behavior_type {
        return {[=](const activation& x) {
                  self->delayed_send(where.above, std::chrono::milliseconds{1}, x);
                },
                [=](const gradient& g) { self->send(where.below, g); }};
      });
    }});
  const auto result = train(job);
  REQUIRE(result);
  CHECK(result->outcome == ending::failed);
  CHECK_THAT(result->failure,
             ContainsSubstring("the relay between stage 0 and stage 1: ")
               && ContainsSubstring("training_job::system"));
}

} // namespace troupe::own_relays_test
