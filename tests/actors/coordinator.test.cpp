// SPDX-License-Identifier: BSD-3-Clause
// The coordinator: the answers of ranks and of stages that count.

#include "actors/run/coordinator.hpp"

#include "actors/run/actor_runtime.hpp"
#include "tests/actors/stand_in.hpp"
#include "tests/actors/tiny.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <catch2/catch_test_macros.hpp>

#include <memory>
#include <vector>

namespace troupe::coordinator_test {

namespace {

/// A coordinator of a run of two stages on two ranks, which are fakes that do nothing.
class lone_coordinator {
public:
  lone_coordinator() {
    for (int stage = 0; stage < 2; ++stage)
      everybody_->stages.push_back(tiny::stand_in<stage_actor>(
        house_.system(), meter_, [](const mail::save&) {},
        [](const mail::fetch_kept_state&) {}, [](const mail::collect&) {}));
    for (int rank = 0; rank < 2; ++rank)
      everybody_->schedulers.push_back(tiny::stand_in<scheduler_actor>(
        house_.system(), meter_, [](const mail::hold&) {}, [](const mail::stop&) {},
        [this](const mail::stop_after& s) { stops.push_back(s.count); }));
    who_ = house_.system().spawn(troupe::coordinator,
                                 run_context{plan_, &meter_, nullptr, nullptr}, board);
    receive(mail::wiring{everybody_});
  }
  ~lone_coordinator() {
    everybody_->for_each([](const auto& one) {
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
    });
    caf::anon_send_exit(who_, caf::exit_reason::user_shutdown);
    house_.settle();
  }
  lone_coordinator(const lone_coordinator&) = delete;
  lone_coordinator& operator=(const lone_coordinator&) = delete;

  template <class Message>
  void receive(Message message) {
    send_external(meter_, who_, std::move(message));
    house_.settle();
  }

  std::shared_ptr<run_status> board = std::make_shared<run_status>();
  std::vector<int> stops; ///< The updates to end after, as ranks received.

private:
  std::shared_ptr<const run_plan> plan_ = std::make_shared<const run_plan>(
    tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::virtual_time));
  message_meter meter_;
  actor_runtime house_{clock_kind::virtual_time};
  std::shared_ptr<actor_handles> everybody_ = std::make_shared<actor_handles>(plan_);
  coordinator_actor who_;
};

} // namespace

TEST_CASE("a stage counts once for a checkpoint, and for no other", "[checkpoint]") {
  lone_coordinator one;
  const position first{0, 0, 0}, second{0, 0, 1};
  one.receive(mail::save{3});
  one.receive(mail::copied{3, first});
  one.receive(mail::copied{3, first});
  one.receive(mail::copied{2, second});
  CHECK_FALSE(one.board->take_copied());
  one.receive(mail::copied{3, second});
  CHECK(one.board->take_copied());

  one.receive(mail::saved{.batches = 3, .where = first});
  one.receive(mail::saved{.batches = 3, .where = first, .updates = 7});
  one.receive(mail::saved{.batches = 2, .where = second});
  CHECK_FALSE(one.board->take_saved());
  one.receive(mail::saved{.batches = 3, .where = second});
  const auto all = one.board->take_saved();
  REQUIRE(all);
  CHECK(all->size() == 2);

  // A stage that has handed copies over has copied. Kept steps between do not disturb a
  // checkpoint.
  one.receive(mail::save{4});
  one.receive(mail::saved{.batches = 4, .where = first});
  one.receive(mail::copied{4, second});
  CHECK(one.board->take_copied());
  one.receive(mail::save{.batches = 5, .hand_over = false, .keep = true});
  one.receive(mail::copied{5, first});
  one.receive(mail::saved{.batches = 4, .where = second});
  CHECK(one.board->take_saved());
  CHECK_FALSE(one.board->take_copied());
  one.receive(mail::copied{5, second});
  CHECK(one.board->take_copied());

  one.receive(mail::copied{6, first}); // before any request
  one.receive(mail::save{6});
  one.receive(mail::copied{6, second});
  CHECK_FALSE(one.board->take_copied());
}

TEST_CASE("copies that a stage kept count once, where they were asked for",
          "[coordinator]") {
  lone_coordinator one;
  const position first{0, 0, 0}, second{0, 0, 1};
  const auto kept = [](int batches, position where) {
    return mail::kept_state{{.batches = batches, .where = where}};
  };
  one.receive(kept(3, first)); // before any request
  one.receive(mail::fetch_kept_state{3, first});
  one.receive(kept(2, first));
  one.receive(kept(3, second));
  CHECK(one.board->take_kept_state().empty());
  one.receive(kept(3, first));
  one.receive(kept(3, first));
  CHECK(one.board->take_kept_state().size() == 1);
}

TEST_CASE("a rank that answers twice counts once", "[coordinator]") {
  lone_coordinator one;
  SECTION("it has finished") {
    one.receive(mail::finished{0});
    one.receive(mail::finished{0});
    CHECK_FALSE(one.board->finished());
    one.receive(mail::finished{1});
    CHECK(one.board->finished());
  }
  SECTION("it rests") {
    one.receive(mail::hold{});
    one.receive(mail::held{0, 1});
    one.receive(mail::held{0, 1});
    CHECK_FALSE(one.board->take_held());
    one.receive(mail::held{1, 1});
    CHECK(one.board->take_held());
    one.receive(mail::hold{});
    one.receive(mail::held{1, 1}); // again, and late
    one.receive(mail::held{0, 2});
    CHECK_FALSE(one.board->take_held());
    one.receive(mail::held{1, 2});
    CHECK(one.board->take_held());
  }
  SECTION("it has come to a checkpoint") {
    one.receive(mail::at_checkpoint{0, 2});
    one.receive(mail::at_checkpoint{0, 2});
    CHECK_FALSE(one.board->take_checkpoint());
    one.receive(mail::at_checkpoint{1, 2});
    CHECK(one.board->take_checkpoint() == 2);
    one.receive(mail::at_checkpoint{1, 2}); // again, and late
    one.receive(mail::at_checkpoint{0, 4});
    CHECK_FALSE(one.board->take_checkpoint());
    one.receive(mail::at_checkpoint{1, 4});
    CHECK(one.board->take_checkpoint() == 4);
  }
  SECTION("it has begun some updates") {
    one.receive(mail::stop{});
    one.receive(mail::started{0, 2});
    one.receive(mail::started{0, 2});
    CHECK(one.stops.empty());
    one.receive(mail::started{1, 3});
    CHECK(one.stops == std::vector{3, 3});
    one.receive(mail::started{0, 2});
    one.receive(mail::started{1, 3});
    CHECK(one.stops.size() == 2);
  }
}

TEST_CASE("weights of a stage that gives them twice count once", "[coordinator]") {
  lone_coordinator one;
  const position first{0, 0, 0}, second{0, 0, 1};
  const auto weights = [](position where) {
    return mail::collected{where, 1, 1, {}, {}};
  };
  one.receive(weights(first)); // before any request
  one.receive(mail::collect{});
  one.receive(weights(second));
  one.receive(weights(second));
  CHECK_FALSE(one.board->take_collected());
  one.receive(weights(first));
  const auto all = one.board->take_collected();
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK(all->front().where != all->back().where);
  one.receive(weights(first));
  one.receive(weights(second));
  CHECK_FALSE(one.board->take_collected());

  const auto shown = [](int batches, position where) {
    return mail::snapshot{batches, where, {}};
  };
  one.receive(shown(2, first));
  one.receive(shown(2, first));
  CHECK_FALSE(one.board->take_snapshot());
  one.receive(shown(4, first));
  one.receive(shown(2, second));
  const auto whole = one.board->take_snapshot();
  REQUIRE(whole);
  REQUIRE(whole->size() == 2);
  CHECK(whole->front().where != whole->back().where);
  one.receive(shown(2, first)); // again, and late
  one.receive(shown(2, second));
  CHECK_FALSE(one.board->take_snapshot());
  one.receive(shown(4, second));
  CHECK(one.board->take_snapshot());
}

} // namespace troupe::coordinator_test
