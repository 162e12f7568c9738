// SPDX-License-Identifier: BSD-3-Clause
// The meeting of a schedule's directions at one optimizer shard.

#include "actors/meetings/direction_meeting.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

#include <utility>

namespace troupe::direction_meeting_test {

using m = direction_meeting;

namespace {

constexpr position where{0, 0, 1};

run_plan plan_of(const schedule& sch) {
  auto plan = tiny::simulation(sch, {4, 4});
  plan.work.simulated().buckets = 2;
  plan.work.simulated().gradient = 48; // six values a bucket
  return plan;
}

mail::meeting_message letter(mail::meeting_message::content what) {
  return {{role::optimizer_shard, where}, meeting_kind::directions, std::move(what)};
}

mail::meeting_message request_of(int direction, std::int64_t samples) {
  return letter(
    mail::update_request{.measured = {.action = {op::update, direction, 1, 3}},
                         .samples = samples,
                         .gradients = {},
                         .from = {},
                         .to = {}});
}

} // namespace

TEST_CASE("one direction meets nobody: its gradients are all",
          "[meetings][directions]") {
  const auto plan = plan_of(one_f_one_b());
  m meets{plan, where, {}};
  CHECK(meets.count() == 1);
  CHECK_FALSE(meets.is_done(m::all_gradients));
  REQUIRE(meets.waits_for());
  CHECK(meets.waits_for()->input == "the gradients of direction 0");
  CHECK(meets.waits_for()->peer == "stage 1");
  CHECK(meets.receive(request_of(0, 7)).empty());
  CHECK(meets.is_done(m::all_gradients));
  CHECK_FALSE(meets.waits_for());
  CHECK(meets.request_of(0).samples == 7);
  CHECK(meets.begin(m::version).empty());
  meets.next_update();
  CHECK_FALSE(meets.is_done(m::all_gradients));
}

TEST_CASE("an update has all gradients when all directions have asked for it and "
          "completed every bucket",
          "[meetings][directions]") {
  const auto plan = plan_of(chimera());
  memory_account memory;
  pool buffers{"a test's gradients", 2, 6, memory};
  const auto up = buffers.acquire(), down = buffers.acquire();
  std::vector<std::pair<int, std::vector<const float*>>> told;
  m meets{plan, where, [&](int bucket, const std::vector<buffer>& all) {
            told.emplace_back(bucket, std::vector<const float*>{});
            for (const auto& one : all)
              told.back().second.push_back(one.data());
            return meeting_messages{letter(mail::pulled{bucket})};
          }};
  CHECK(meets.count() == 2);
  CHECK(meets.receive(letter(mail::bucket_ready{1, 0, down})).empty());
  meets.receive(request_of(1, 3));
  CHECK(meets.waits_for()->input == "the gradients of direction 0");
  meets.receive(request_of(0, 4));
  REQUIRE(meets.waits_for());
  CHECK(meets.waits_for()->input == "the gradients of direction 0 to arrive");
  CHECK(told.empty());
  const auto written = meets.receive(letter(mail::bucket_ready{0, 0, up}));
  REQUIRE(told.size() == 1); // in the order of directions, not of messages
  CHECK(told[0] == std::pair{0, std::vector<const float*>{up.data(), down.data()}});
  REQUIRE(written.size() == 1);
  CHECK(std::get<mail::pulled>(written[0].body).server == 0);
  CHECK_FALSE(meets.is_done(m::all_gradients)); // bucket 1
  meets.receive(letter(mail::bucket_ready{0, 1, up}));
  REQUIRE(meets.waits_for());
  CHECK(meets.waits_for()->input == "the gradients of direction 1 to arrive");
  CHECK(meets.waits_for()->peer == plan.name_of({0, 1, 1}));
  meets.receive(letter(mail::bucket_ready{1, 1, down}));
  CHECK(meets.is_done(m::all_gradients));
  CHECK_FALSE(meets.waits_for());
  CHECK(std::as_const(meets).request_of(1).samples == 3);
}

TEST_CASE("the version travels to the other direction, and is there when it arrives",
          "[meetings][directions]") {
  const auto plan = plan_of(chimera());
  m meets{plan, where, {}};
  auto out = meets.begin(m::version);
  REQUIRE(out.size() == 1);
  CHECK(out[0].to == performer{role::optimizer_shard, {0, 1, 1}});
  CHECK(out[0].meeting == meeting_kind::directions);
  CHECK(out[0].kind == traffic::parameters);
  CHECK(out[0].bytes == 48);
  CHECK_FALSE(meets.is_done(m::version_at(1)));
  meets.receive(std::move(out[0]));
  CHECK(meets.is_done(m::version_at(1)));
  meets.next_update();
  CHECK_FALSE(meets.is_done(m::version_at(1)));
}

} // namespace troupe::direction_meeting_test
