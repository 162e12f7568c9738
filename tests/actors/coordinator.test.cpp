// The coordinator: which copies count, for a checkpoint or of a step.

#include "actors/run/coordinator.hpp"

#include "actors/run/actor_house.hpp"
#include "tests/actors/stand_in.hpp"
#include "tests/actors/tiny.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <catch2/catch_test_macros.hpp>

#include <memory>

using namespace troupe;

namespace {

/// A coordinator of a run of two stages, which do nothing.
class lone_coordinator {
public:
  lone_coordinator() {
    for (int stage = 0; stage < 2; ++stage)
      everybody_->stages.push_back(tiny::stand_in<stage_actor>(
        house_.system(), meter_, [](const mail::save&) {}, [](const mail::recall&) {}));
    who_ = house_.system().spawn(troupe::coordinator,
                                 props{plan_, &meter_, nullptr, nullptr}, board);
    hear(mail::wiring{everybody_});
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
  void hear(Message what) {
    post(meter_, who_, std::move(what));
    house_.settle();
  }

  std::shared_ptr<notice_board> board = std::make_shared<notice_board>();

private:
  std::shared_ptr<const run_plan> plan_ = std::make_shared<const run_plan>(
    tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::virtual_time));
  mail_meter meter_;
  actor_house house_{clock_kind::virtual_time};
  std::shared_ptr<directory> everybody_ = std::make_shared<directory>(plan_);
  coordinator_actor who_;
};

} // namespace

TEST_CASE("a stage counts once for a checkpoint, and for no other", "[checkpoint]") {
  lone_coordinator one;
  const position first{0, 0, 0}, second{0, 0, 1};
  one.hear(mail::save{3});
  one.hear(mail::copied{3, first});
  one.hear(mail::copied{3, first});
  one.hear(mail::copied{2, second});
  CHECK_FALSE(one.board->take_copied());
  one.hear(mail::copied{3, second});
  CHECK(one.board->take_copied());

  one.hear(mail::saved{.batches = 3, .where = first});
  one.hear(mail::saved{.batches = 3, .where = first, .updates = 7});
  one.hear(mail::saved{.batches = 2, .where = second});
  CHECK_FALSE(one.board->take_saved());
  one.hear(mail::saved{.batches = 3, .where = second});
  const auto all = one.board->take_saved();
  REQUIRE(all);
  CHECK(all->size() == 2);

  // Who has handed copies over has made them; steps that are kept between do not
  // disturb a checkpoint.
  one.hear(mail::save{4});
  one.hear(mail::saved{.batches = 4, .where = first});
  one.hear(mail::copied{4, second});
  CHECK(one.board->take_copied());
  one.hear(mail::save{.batches = 5, .hand_over = false, .keep = true});
  one.hear(mail::copied{5, first});
  one.hear(mail::saved{.batches = 4, .where = second});
  CHECK(one.board->take_saved());
  CHECK_FALSE(one.board->take_copied());
  one.hear(mail::copied{5, second});
  CHECK(one.board->take_copied());

  one.hear(mail::copied{6, first}); // before anybody was asked
  one.hear(mail::save{6});
  one.hear(mail::copied{6, second});
  CHECK_FALSE(one.board->take_copied());
}

TEST_CASE("copies that a stage kept count once, where they were asked for",
          "[coordinator]") {
  lone_coordinator one;
  const position first{0, 0, 0}, second{0, 0, 1};
  const auto kept = [](int batches, position where) {
    return mail::recalled{{.batches = batches, .where = where}};
  };
  one.hear(kept(3, first)); // before anybody was asked
  one.hear(mail::recall{3, first});
  one.hear(kept(2, first));
  one.hear(kept(3, second));
  CHECK(one.board->take_recalled().empty());
  one.hear(kept(3, first));
  one.hear(kept(3, first));
  CHECK(one.board->take_recalled().size() == 1);
}
