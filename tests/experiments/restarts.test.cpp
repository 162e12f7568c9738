// SPDX-License-Identifier: BSD-3-Clause
// Tests when a run is started again, and when no longer. Functions take the place of
// nodes.

#include "experiments/session/restarts.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "actors/nodes/node_registry.hpp"
#include "actors/run/perform.hpp"
#include "experiments/session/restart_point.hpp"
#include "tests/experiments/tiny_options.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <deque>
#include <functional>
#include <utility>

namespace troupe::restarts_test {

using Catch::Matchers::ContainsSubstring;

namespace {

restarts::attempt lost() {
  restarts::attempt result;
  result.result.outcome = ending::failed;
  result.result.failure = "a node is lost";
  result.has_lost = true;
  return result;
}

/// A run whose starts end as the test says; later starts succeed.
struct scripted_run {
  std::deque<std::function<restarts::attempt()>> starts;
  int gain = 0; // batches kept at each loss
  bool finds = true, has_all = true;
  bool interrupted = false;
  int started = 0, waits = 0;
  std::vector<int> began_behind;
  restarts again;

  run_result perform(bool may_restart = true) {
    run_plan plan;
    plan.dims.batches_before = 3;
    plan.dims.steps = 1'000'000;
    const restarts::start_functions by{
      .start =
        [this](const run_plan& next) {
          ++started;
          began_behind.push_back(next.dims.batches_before);
          if (starts.empty())
            return restarts::attempt{};
          auto go = std::move(starts.front());
          starts.pop_front();
          return go();
        },
      .find_nodes = [this](const run_plan&) { return finds; },
      .has_all_nodes = [this] { return has_all; },
      .wait = [this] { ++waits; },
      .is_interrupted = [this] { return interrupted; }};
    restarts::new_start next;
    if (may_restart)
      next = [this, plan](const run_result&) mutable {
        plan.dims.batches_before += gain;
        return plan;
      };
    return again.perform(plan, by, next);
  }
};

restarts::attempt fails_to_start(bool is_loss) {
  throw node_failure{is_loss ? "node 2 is lost" : "nobody listens", is_loss};
}

} // namespace

TEST_CASE("a node that is lost at the start costs a start", "[nodes]") {
  scripted_run run;
  run.starts = {[] { return fails_to_start(true); }};
  CHECK(run.perform().outcome == ending::finished);
  CHECK(run.started == 2);
  CHECK(run.again.has_lost());
}

TEST_CASE("who has never answered is a user's mistake, later the same is a loss",
          "[nodes]") {
  const auto unreachable = [] { return fails_to_start(false); };
  scripted_run first;
  first.starts = {unreachable};
  CHECK_THROWS_AS(first.perform(), node_failure);
  CHECK(first.started == 1);

  scripted_run second; // the second run of a command
  REQUIRE(second.perform().outcome == ending::finished);
  second.starts = {unreachable};
  CHECK(second.perform().outcome == ending::finished);
  CHECK(second.started == 3);

  scripted_run unasked; // without --restart
  unasked.starts = {[] { return fails_to_start(true); }};
  CHECK_THROWS_AS(unasked.perform(false), node_failure);
}

TEST_CASE("nodes that refuse a second time are given time to come back", "[nodes]") {
  scripted_run run;
  const auto refuses = [] { return fails_to_start(false); };
  run.starts = {lost, refuses, refuses, refuses};
  CHECK(run.perform().outcome == ending::finished);
  CHECK(run.started == 5);
  CHECK(run.waits == 2);
}

TEST_CASE("a refusal that no new start changes ends the run at once", "[nodes]") {
  scripted_run run;
  const auto refuses = []() -> restarts::attempt {
    throw lasting_refusal{"node 2: there is no file t.txt"};
  };
  run.starts = {lost, refuses, refuses};
  CHECK_THROWS_WITH(
    run.perform(),
    "node 2: there is no file t.txt; no restart can succeed: correct the fault, or "
    "leave the node out of --nodes, and continue with --resume");
  CHECK(run.started == 2);
  scripted_run fewer; // fewer nodes; the others may return
  fewer.starts = {lost, refuses, refuses};
  fewer.has_all = false;
  CHECK(fewer.perform().outcome == ending::finished);
  CHECK(fewer.started == 4);
  scripted_run differs; // nodes with other data return
  differs.starts = {lost, []() -> restarts::attempt { throw nodes_differ{"data"}; }};
  differs.has_all = false;
  CHECK_THROWS_AS(differs.perform(), lasting_refusal);
  CHECK(differs.started == 2);
  scripted_run first; // no state to resume from
  first.starts = {refuses};
  CHECK_THROWS_WITH(first.perform(), "node 2: there is no file t.txt");
}

TEST_CASE("a run that nodes keep refusing ends with advice that helps", "[nodes]") {
  scripted_run run;
  run.starts.assign(200, [] { return fails_to_start(false); });
  run.starts.front() = lost;
  const auto result = run.perform();
  CHECK(run.started == 51);
  CHECK_THAT(result.failure, ContainsSubstring("nobody listens; 50 starts in a row")
                               && ContainsSubstring("are idle, continue with --resume")
                               && !ContainsSubstring("--checkpoint-every"));
}

TEST_CASE("losses count only if the run comes no further between them", "[nodes]") {
  scripted_run run;
  SECTION("each start comes further") {
    run.gain = 1;
    run.starts.assign(200, lost);
    CHECK(run.perform().outcome == ending::finished);
    CHECK(run.began_behind.back() == 203);
  }
  SECTION("none does") {
    run.starts.assign(200, lost);
    const auto result = run.perform();
    CHECK(result.outcome == ending::failed);
    CHECK(run.started == 51);
    CHECK_THAT(
      result.failure,
      ContainsSubstring("a node is lost; 50 starts in a row have not passed step 3"));
    CHECK_THAT(result.failure, ContainsSubstring("--checkpoint-every"));
  }
}

TEST_CASE("why a run is not started again is told", "[nodes]") {
  scripted_run run;
  run.starts = {lost};
  run.finds = false;
  CHECK_THAT(run.perform().failure, ContainsSubstring("too few nodes answer"));
}

TEST_CASE("a user's end at the start ends the run", "[nodes]") {
  scripted_run run;
  run.starts = {lost, [] { return fails_to_start(true); }};
  run.interrupted = true;
  CHECK(run.perform().outcome == ending::interrupted);
  CHECK(run.started == 2);
}

TEST_CASE("a run goes on from no checkpoint of its end", "[nodes]") {
  const temporary_folder folder;
  auto typed = tiny::options_of("gpipe");
  typed.schedules.steps = 4;
  auto plan = tiny::set_up_training(typed)->runs.front().plan;
  plan.copies.checkpoint_every = 2;
  plan.keep.weights = true;
  std::string wrong;
  known_checkpoints known;
  const auto save = [&](const training_copies& all) {
    const auto outcome = write_checkpoint(folder.path(), plan, all, 2, known);
    wrong += outcome.write_error + outcome.removal_error;
  };
  REQUIRE(perform(plan, {.save = save}).outcome == ending::finished);
  REQUIRE(wrong.empty());
  REQUIRE(checkpoints_in(folder.path()).size() == 2);
  const auto place = folder.path().string();
  const auto behind = find_restart_point({}, plan, nullptr, place);
  REQUIRE(behind.from);
  CHECK(behind.from->batches == 2);
  CHECK(behind.description == place + "/batch-2");
  plan.dims.steps = 5;
  CHECK(find_restart_point({}, plan, nullptr, place).from->batches == 4);
}

TEST_CASE("the last checkpoint may be the one that a run went on from", "[nodes]") {
  const temporary_folder folder;
  const auto old = (folder.path() / "c").string(),
             fresh = (folder.path() / "d").string();
  std::filesystem::create_directories(folder.path() / "c/batch-2");
  std::filesystem::create_directories(folder.path() / "d");
  folder.write("c/batch-2/manifest.json", "{}");
  CHECK(last_checkpoint({}).empty());
  CHECK(last_checkpoint({.folder = fresh}) == "; there is no checkpoint yet");
  CHECK(last_checkpoint({.folder = fresh, .resume = old})
        == "; the last checkpoint is " + old + "/batch-2");
  CHECK(last_checkpoint({.resume = old})
        == "; the last checkpoint is " + old + "/batch-2");
  std::filesystem::create_directories(folder.path() / "d/batch-3");
  folder.write("d/batch-3/manifest.json", "{}");
  CHECK(last_checkpoint({.folder = fresh, .resume = old})
        == "; the last checkpoint is " + fresh + "/batch-3");
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  CHECK_THAT(last_checkpoint({.folder = (folder.path() / "loop").string()}),
             ContainsSubstring("the last checkpoint is unknown: cannot read the folder")
               && ContainsSubstring("Too many levels of symbolic links"));
}

} // namespace troupe::restarts_test
