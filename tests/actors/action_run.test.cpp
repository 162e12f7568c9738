// SPDX-License-Identifier: BSD-3-Clause
// The messages that a performer sends about an action, in order. The meetings are
// fakes.

#include "actors/rank/action_run.hpp"

#include "tests/actors/fake_meeting.hpp"
#include "tests/actors/written_port.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::conversation_test {

using lines = std::vector<std::string>;

namespace {

constexpr meeting_step sum(int occasion) {
  return {meeting_kind::sums, occasion};
}

/// An action of a performer whose meetings are sums. The measured action is of version
/// 4.
struct spoken {
  meeting_list list() {
    meeting_list result;
    result[meeting_kind::sums] = &sums;
    return result;
  }

  void begin(std::vector<piece> pieces, meeting_steps begins = {}) {
    talk.begin(what, {.operations = 1}, {std::move(begins), std::move(pieces)});
  }

  lines begun;
  tiny::fake_meeting sums{"sum", begun};
  tiny::written_port port;
  action what{op::backward, 0, 1, 3};
  action_run talk{port, list(),
                  [this] { return measured_action{.action = what, .version = 4}; }};
};

} // namespace

TEST_CASE("an action that meets nobody computes, and has ended", "[conversation]") {
  spoken s;
  CHECK_FALSE(s.talk.under_way());
  s.begin({{}});
  CHECK(s.port.news().empty()); // before the grant
  s.talk.resume();
  CHECK(s.port.news() == lines{"computes B3"});
  CHECK(s.talk.ended({.start = 1, .end = 2}));
  CHECK(s.port.news().empty()); // the performer reports the end
  CHECK_FALSE(s.talk.under_way());
}

TEST_CASE("letters leave before the device is given its work", "[conversation]") {
  spoken s;
  s.begin({{.begins = {sum(7)}}}, {sum(6)});
  CHECK(s.port.news() == lines{"writes pulled from server 6"});
  s.talk.resume();
  CHECK(s.port.news() == lines{"writes pulled from server 7", "computes B3"});
}

TEST_CASE("an action that has to wait before it starts pauses, and took no time",
          "[conversation]") {
  spoken s;
  s.begin({{.needs = {sum(0)}}}, {sum(0)});
  s.port.news();
  s.talk.resume();
  CHECK(s.port.news() == lines{"paused B3"});
  REQUIRE(s.port.measured.size() == 1);
  CHECK(s.port.measured[0].part);
  CHECK(s.port.measured[0].start == 0);
  CHECK(s.port.measured[0].end == 0);
  CHECK(s.port.measured[0].ends_in == nothing);
  s.talk.poll();
  CHECK(s.port.news().empty());
  s.sums.end(0);
  s.talk.poll();
  s.talk.poll();
  CHECK(s.port.news() == lines{"arrived B3"}); // once
  s.talk.resume();
  CHECK(s.port.news() == lines{"computes B3"});
}

TEST_CASE("between two pieces an action writes, pauses, arrives and goes on",
          "[conversation]") {
  spoken s;
  s.begin({{.share = 0.5, .ends_in = {sum(0)}, .end = shards_meet},
           {.share = 0.5, .needs = {sum(0)}}});
  s.talk.resume();
  s.port.news();
  CHECK_FALSE(s.talk.ended({.start = 10, .end = 25, .off_processor_time = 5}));
  CHECK(s.port.news() == lines{"writes pulled from server 0", "paused B3"});
  const auto& part = s.port.measured.back();
  CHECK(part.action == s.what);
  CHECK(part.version == 4);
  CHECK(part.part);
  CHECK(part.start == 10);
  CHECK(part.end == 25);
  CHECK(part.off_processor_time == 5);
  CHECK(part.ends_in == shards_meet);
  s.sums.end(0);
  s.talk.poll();
  CHECK(s.port.news() == lines{"arrived B3"});
  s.talk.resume();
  CHECK(s.talk.ended({.start = 30, .end = 40}));
  CHECK(s.port.news() == lines{"computes B3"});
}

TEST_CASE("an action that need not wait pauses all the same, and arrives at once",
          "[conversation]") {
  spoken s;
  s.begin({{.share = 0.5, .end = layer_ends}, {.share = 0.5}});
  s.talk.resume();
  s.port.news();
  CHECK_FALSE(s.talk.ended({.start = 1, .end = 2}));
  CHECK(s.port.news() == lines{"paused B3", "arrived B3"});
}

TEST_CASE("a piece that yields pauses once, and goes on when it is granted again",
          "[conversation]") {
  spoken s;
  s.begin({{.yields = true}});
  s.talk.resume();
  CHECK(s.port.news() == lines{"paused B3"});
  s.talk.poll();
  CHECK(s.port.news() == lines{"arrived B3"});
  s.talk.resume();
  CHECK(s.port.news() == lines{"computes B3"});
}

TEST_CASE("a letter that comes while the device computes changes nothing",
          "[conversation]") {
  spoken s;
  s.begin({{.share = 0.5, .end = layer_ends}, {.share = 0.5}});
  s.talk.poll(); // and not before the grant either
  s.talk.resume();
  s.talk.poll();
  CHECK(s.port.news() == lines{"computes B3"});
  const auto device = s.talk.explain("stage 1");
  REQUIRE(device);
  CHECK(device->input == "B3 to end on its device");
  s.talk.ended({.start = 0, .end = 1});
  CHECK_FALSE(s.talk.explain("stage 1"));
}

TEST_CASE("who pauses explains what it waits for, and for whom", "[conversation]") {
  spoken s;
  CHECK_FALSE(s.talk.explain("stage 1"));
  s.begin({{.needs = {sum(0)}}}, {sum(0)});
  s.talk.resume();
  const auto waits = s.talk.explain("stage 1");
  REQUIRE(waits);
  CHECK(waits->actor == "stage 1");
  CHECK(waits->input == "sum 0 of B3");
  CHECK(waits->peer == "the others");
  s.sums.end(0);
  const auto leave = s.talk.explain("stage 1");
  REQUIRE(leave);
  CHECK(leave->input == "its scheduler to resume B3");
  CHECK(leave->peer.empty());
  s.talk.poll(); // now the scheduler has the turn
  CHECK_FALSE(s.talk.explain("stage 1"));
}

} // namespace troupe::conversation_test
