// SPDX-License-Identifier: BSD-3-Clause
// The messages of a node's actors: those that are sent when a run ends.

#include "actors/nodes/message_router.hpp"

#include "actors/mail/send.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::mailroom_test {

namespace {

/// A control line that keeps each frame.
class kept_line : public control_line {
public:
  using control_line::send;
  void send(control_frame frame) override { frames.push_back(std::move(frame)); }
  void limit_unsent(std::size_t) override {}
  void close() override {}

  std::vector<control_frame> frames;
};

} // namespace

TEST_CASE("losses that a node's actors have sent leave before its mail is closed",
          "[nodes]") {
  const auto plan = std::make_shared<const run_plan>(
    tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::real));
  message_router messages{plan, {1, 1}, 1, {}, [](int, const std::string&) {}};
  const auto to_lead = std::make_shared<kept_line>();
  messages.add(0, to_lead);
  local_run here{
    plan, {.ranks = {0, 1}, .leads = false, .make_remote_actors = messages.maker()}};
  here.gather();
  messages.open(here);
  for (const int microbatch : {0, 1}) // no thread runs the recorder's proxy yet
    send_external(here.meter(), here.actors().handles()->recorder,
                  mail::microbatch_loss{microbatch, 3, {.loss = 0.5 + microbatch}});
  messages.close_after_actors(here);
  std::vector<double> losses;
  for (const auto& frame : to_lead->frames)
    if (const auto sent = wire::decode_actor_message(frame.text))
      if (const auto* const one = std::get_if<mail::microbatch_loss>(&sent->message))
        losses.push_back(one->sum.loss);
  CHECK(losses == std::vector{0.5, 1.5});
  CHECK(here.runtime().actors() == 0);
}

} // namespace troupe::mailroom_test
