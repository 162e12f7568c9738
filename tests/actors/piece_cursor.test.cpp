// SPDX-License-Identifier: BSD-3-Clause
// The pieces of an action: the pieces that become one work, the meetings that begin
// with each, and the pauses. The meetings are fakes.

#include "actors/rank/piece_cursor.hpp"

#include "tests/actors/fake_meeting.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

namespace troupe::piece_walk_test {

using Catch::Approx;
using lines = std::vector<std::string>;
using numbers = std::vector<int>;

namespace {

constexpr meeting_step sum(int occasion) {
  return {meeting_kind::sums, occasion};
}
constexpr meeting_step norm(int occasion) {
  return {meeting_kind::norm, occasion};
}

/// Runs the pieces of an action, with two kinds of meetings.
struct walked {
  meeting_list list() {
    meeting_list result;
    result[meeting_kind::sums] = &sums;
    result[meeting_kind::norm] = &norms;
    return result;
  }

  numbers begin(std::vector<piece> pieces, meeting_steps begins = {},
                action_callbacks tell = {}) {
    return tiny::numbers_of(walk.begin(what, {.operations = 100},
                                       {std::move(begins), std::move(pieces)},
                                       std::move(tell)));
  }

  work next() {
    meeting_messages out;
    auto result = walk.next_work(out);
    written = tiny::numbers_of(out);
    return result;
  }

  lines log; ///< Meetings that have begun.
  tiny::fake_meeting sums{"sum", log}, norms{"norm", log};
  piece_cursor walk{list()};
  action what{op::backward, 0, 2, 5};
  numbers written; ///< In messages, with the last work.
};

/// Runs the parts of a work; returns the indices of parts that reported an end.
numbers run(const work& what, numbers& ran) {
  ran.clear();
  for (const auto& part : what.parts) {
    part.run();
    if (part.on_done)
      part.on_done();
  }
  return ran;
}

} // namespace

TEST_CASE("an action without meetings is one work", "[piece_cursor]") {
  walked w;
  int ran = 0;
  CHECK(w.begin({{.run = [&] { ++ran; }}}).empty());
  REQUIRE(w.walk.under_way());
  REQUIRE(w.walk.can_resume());
  const auto all = w.next();
  CHECK(all.kind == static_cast<int>(op::backward));
  CHECK(all.stage == 2);
  CHECK(all.microbatch == 5);
  CHECK(all.operations == 100);
  CHECK(all.parts.empty());
  CHECK(all.done() == 1);
  all.run();
  CHECK(ran == 1);
  CHECK(w.walk.under_way()); // until the work has ended
  CHECK(w.walk.at_work());
  CHECK(w.walk.end_work().empty());
  CHECK_FALSE(w.walk.at_work());
  CHECK_FALSE(w.walk.under_way());
  CHECK(w.log.empty());
}

TEST_CASE("pieces are one work up to the next meeting", "[piece_cursor]") {
  walked w;
  numbers ran;
  std::vector<piece> pieces(7);
  for (int i = 0; i < 7; ++i) {
    pieces[static_cast<std::size_t>(i)].share = (i + 1) / 28.0;
    pieces[static_cast<std::size_t>(i)].run = [&ran, i] { ran.push_back(i); };
  }
  pieces[1].ends_in = {sum(0)}; // 0 1 | 2 3 | 4 | 5 | 6
  pieces[4].needs = {sum(0)};
  pieces[4].end = layer_ends;
  pieces[6].begins = {norm(1)};
  w.begin(std::move(pieces));
  const auto first = w.next();
  CHECK(run(first, ran) == numbers{0, 1});
  CHECK(first.start_share == 0);
  CHECK(first.done() == Approx(3 / 28.0));
  CHECK(w.log.empty()); // before the work has ended
  CHECK(tiny::numbers_of(w.walk.end_work()) == numbers{0});
  CHECK(w.log == lines{"sum 0"});
  CHECK(w.walk.can_resume()); // the next piece does not need sum 0
  const auto second = w.next();
  CHECK(run(second, ran) == numbers{2, 3});
  CHECK(second.start_share == Approx(3 / 28.0));
  CHECK(second.done() == Approx(10 / 28.0));
  w.walk.end_work();
  CHECK_FALSE(w.walk.can_resume());
  w.sums.end(0);
  CHECK(w.walk.can_resume());
  CHECK(run(w.next(), ran) == numbers{4});
  w.walk.end_work();
  CHECK(run(w.next(), ran) == numbers{5});
  w.walk.end_work();
  CHECK(w.log == lines{"sum 0"});
  const auto last = w.next();
  CHECK(w.log == lines{"sum 0", "norm 1"}); // when it starts
  CHECK(w.written == numbers{1});
  CHECK(run(last, ran) == numbers{6});
  CHECK(last.done() == Approx(1));
  CHECK(w.walk.end_work().empty());
  CHECK_FALSE(w.walk.under_way());
}

TEST_CASE("meetings begin in the order in which pieces name them", "[piece_cursor]") {
  walked w;
  std::vector<piece> pieces(1);
  pieces[0].needs = {sum(3), norm(1)};
  pieces[0].begins = {norm(0), sum(4)};
  pieces[0].ends_in = {sum(5), norm(2)};
  CHECK(w.begin(std::move(pieces), {sum(3), norm(1)}) == numbers{3, 1});
  CHECK_FALSE(w.walk.can_resume());
  w.sums.end(3);
  CHECK_FALSE(w.walk.can_resume()); // the piece needs both
  w.norms.end(1);
  CHECK(w.walk.can_resume());
  w.next();
  CHECK(w.written == numbers{0, 4});
  CHECK(tiny::numbers_of(w.walk.end_work()) == numbers{5, 2});
  CHECK(w.log == lines{"sum 3", "norm 1", "norm 0", "sum 4", "sum 5", "norm 2"});
}

TEST_CASE("each bucket is told of behind the piece that completes it",
          "[piece_cursor]") {
  walked w;
  numbers ran;
  std::vector<piece> pieces(3);
  for (auto& p : pieces) {
    p.share = 0;
    p.run = [&ran] { ran.push_back(-1); };
  }
  pieces[0].completes = {7};
  pieces[2].completes = {4, 2};
  const auto some = pieces;
  w.begin(pieces, {}, {.bucket = [&ran](int bucket) { ran.push_back(bucket); }});
  CHECK(run(w.next(), ran) == numbers{-1, 7, -1, -1, 4, 2});
  w.walk.end_work();
  w.begin(some); // without callbacks
  CHECK(run(w.next(), ran) == numbers{-1, -1, -1});
}

TEST_CASE("a piece that is the whole action tells of its buckets too",
          "[piece_cursor]") {
  walked w;
  numbers ran;
  w.begin({{.run = [&ran] { ran.push_back(-1); }, .completes = {3}}}, {},
          {.bucket = [&ran](int bucket) { ran.push_back(bucket); }});
  const auto all = w.next();
  CHECK(run(all, ran) == numbers{-1, 3});
  CHECK(all.done() == 1);
}

TEST_CASE("the first work waits for inputs, and of the last one's launch is told",
          "[piece_cursor]") {
  walked w;
  const auto input = std::make_shared<gpu_completion>();
  int told = 0;
  meeting_messages out;
  w.walk.begin({op::forward, 0, 0, 0}, {},
               {.begins = {},
                .pieces = {{.share = 0.5, .end = layer_ends}, {.share = 0.5}},
                .inputs = {input}},
               {.launched = [&](const auto& end) { told += end == input ? 1 : 100; }});
  const auto first = w.walk.next_work(out);
  CHECK(first.inputs == std::vector{input});
  CHECK_FALSE(first.launched);
  w.walk.end_work();
  const auto last = w.walk.next_work(out);
  CHECK(last.inputs.empty());
  REQUIRE(last.launched);
  last.launched(input);
  CHECK(told == 1);
}

TEST_CASE("a piece without costs takes no time where time is only counted",
          "[piece_cursor]") {
  walked w;
  w.begin({{.share = 0, .costs = false, .end = norm_measured}, {}});
  auto first = w.next();
  CHECK(first.kind == op_count);
  CHECK(first.operations == 0);
  w.walk.end_work();
  CHECK(w.next().operations == 100);
}

TEST_CASE("what a piece ended in is said once, and of its own action",
          "[piece_cursor]") {
  walked w;
  CHECK(w.walk.take_end() == nothing);
  w.begin({{.share = 0.5, .end = layer_ends}, {.share = 0.5}});
  w.next();
  CHECK(w.walk.take_end() == nothing); // the work has not ended
  w.walk.end_work();
  CHECK(w.walk.take_end() == layer_ends);
  CHECK(w.walk.take_end() == nothing);
  w.next();
  w.walk.end_work();
  CHECK(w.walk.take_end() == nothing);
  w.begin({{.end = shards_meet}}); // the end of this one is not read
  w.next();
  w.walk.end_work();
  w.begin({{}});
  CHECK(w.walk.take_end() == nothing);
}

TEST_CASE("what waits resumes once, when all that it needs is over", "[piece_cursor]") {
  walked w;
  w.begin({{.needs = {sum(0)}}}, {sum(0)});
  CHECK_FALSE(w.walk.resumes()); // not paused
  w.walk.pause();
  CHECK(w.walk.waits());
  CHECK_FALSE(w.walk.resumes());
  w.sums.end(0);
  CHECK(w.walk.resumes());
  CHECK_FALSE(w.walk.waits());
  CHECK_FALSE(w.walk.resumes());
}

TEST_CASE("a piece that yields waits once, though it needs nothing", "[piece_cursor]") {
  walked w;
  w.begin({{.yields = true}});
  CHECK_FALSE(w.walk.can_resume());
  CHECK_FALSE(w.walk.waits_for());
  w.walk.pause();
  CHECK(w.walk.resumes());
  CHECK(w.walk.can_resume());
}

TEST_CASE("who is missing is who the next piece needs, and nobody else",
          "[piece_cursor]") {
  walked w;
  CHECK_FALSE(w.walk.waits_for()); // nothing is under way
  w.begin({{.needs = {sum(0), norm(0)}}, {}}, {norm(0), norm(1), sum(0)});
  REQUIRE(w.walk.waits_for());
  CHECK(w.walk.waits_for()->input == "sum 0");
  CHECK(w.walk.waits_for()->peer == "the others");
  w.sums.end(0);
  REQUIRE(w.walk.waits_for());
  CHECK(w.walk.waits_for()->input == "norm 0");
  w.norms.end(0);
  CHECK_FALSE(w.walk.waits_for()); // norm 1 is open, but not needed
}

TEST_CASE("an action begins anew, whatever the one before it left", "[piece_cursor]") {
  walked w;
  w.begin({{.share = 0.5, .yields = true}, {.share = 0.5}});
  w.walk.pause();
  w.begin({{.share = 0.25}, {.share = 0.75}});
  CHECK_FALSE(w.walk.waits());
  const auto all = w.next();
  CHECK(all.start_share == 0);
  CHECK(all.parts.size() == 2);
  w.walk.end_work();
  CHECK_FALSE(w.walk.under_way());
}

} // namespace troupe::piece_walk_test
