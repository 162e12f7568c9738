// SPDX-License-Identifier: BSD-3-Clause
// The state that survives in a run that has lost processes. The run loop asks replicas,
// counts answers, and stops waiting at some time.

#include "actors/checkpoints/gathered_state.hpp"
#include "plan/stage_pools.hpp"
#include "tests/actors/lone_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

namespace troupe::recall_test {

using Catch::Matchers::ContainsSubstring;
using texts = std::vector<std::string>;

namespace {

/// Processes elsewhere, one for each rank, of which some are lost.
class some_lost : public distant_run {
public:
  explicit some_lost(std::set<int> lost) : lost_(std::move(lost)) {}

  void lose(int rank) {
    const std::lock_guard guard{lock_};
    lost_.insert(rank);
  }

  stall_rule::verdict look() override { return stall_rule::verdict::fine; }
  std::string at_work() override { return {}; }
  local_run::distant_maker maker() override { return {}; }
  known_groups groups() const override { return {}; }
  void begin(local_run&) override {}
  void pause() override {}
  void resume() override {}
  std::vector<mail::node_report> end() override { return {}; }
  bool has_lost(int rank) const override {
    const std::lock_guard guard{lock_};
    return lost_.contains(rank);
  }
  std::int64_t moved() const override { return 0; }
  nanoseconds clock_doubt() const override { return 0; }

private:
  mutable std::mutex lock_;
  std::set<int> lost_;
};

/// One stage with three data replicas, a rank each, which kept the second step and then
/// failed.
struct failed_run {
  explicit failed_run(std::set<int> lost) : others(std::move(lost)) {
    run.plan.mesh[axis::data] = 3;
    run.plan.exchange = find_exchange("ring");
    run.plan.copies.keep_steps = true;
    run.others = &others;
    run.board.post_checkpoint(2);
  }

  /// The state that a data replica has kept: every value is the replica's number.
  mail::kept_state kept(int data, int batches = 2, float value = -1) {
    const position where{data, 0, 0};
    const auto bound = kept_copies(run.plan, where);
    mail::saved result{.batches = batches, .where = where, .updates = 5, .ages = {0}};
    const auto add = [&](std::vector<buffer>& to, std::int64_t values) {
      auto& one =
        *pools.emplace_back(std::make_unique<pool>("a test", 1, values, account));
      to.push_back(one.acquire());
      std::fill_n(to.back().data(), values,
                  value < 0 ? static_cast<float>(data) : value);
    };
    add(result.versions, bound.versions.values);
    for (int m = 0; m < bound.state.buffers; ++m)
      add(result.state, bound.state.values);
    return {std::move(result)};
  }

  /// Fetches the kept state, when all stages have copied and then the run has failed.
  tl::expected<std::shared_ptr<const training_state>, std::string>
  recall(const tiny::lone_run::hears& answer) {
    const auto manager = run.managed([this, answer](const std::string& what) {
      if (what == "keep") {
        run.board.post_copied(); // posted, and the run fails at once
        run.board.post_failure("a node is lost");
      } else {
        answer(what);
      }
    });
    manager->wait();
    return manager->fetch_kept_state();
  }

  memory_account account;
  std::vector<std::unique_ptr<pool>> pools;
  some_lost others;
  tiny::lone_run run{clock_kind::real};
};

} // namespace

TEST_CASE("the first data replica that is there is asked for what it kept",
          "[manager]") {
  failed_run one{{0}};
  const auto found = one.recall([&](const std::string& what) {
    if (what == "recall 2 of 1") {
      one.run.board.post_kept_state(one.kept(2)); // another replica: was not asked
      one.run.board.post_kept_state(one.kept(1));
    }
  });
  REQUIRE(found);
  CHECK((*found)->batches == 2);
  CHECK(
    (*found)->state.size()
    == static_cast<std::size_t>(optimizer::state_size(one.run.plan.work->optimizer)));
  for (const auto& bucket : (*found)->parameters) { // between parameters there are 0s
    CHECK(std::ranges::count(bucket, 1.0F) > std::ssize(bucket) / 2);
    CHECK(std::ranges::count(bucket, 2.0F) == 0);
  }
  CHECK((*found)->updates
        == std::vector<std::int64_t>(one.run.plan.work->whole.layers.size(), 5));
  CHECK(one.run.heard() == texts{"keep", "go on", "recall 2 of 1"});
}

TEST_CASE("who is lost while it is asked is not waited for", "[manager]") {
  failed_run one{{0}};
  const auto found = one.recall([&](const std::string& what) {
    if (what == "recall 2 of 1") {
      one.run.board.post_kept_state(one.kept(1, 1, 9)); // another step
      one.others.lose(1);
    }
    if (what == "recall 2 of 2")
      one.run.board.post_kept_state(one.kept(2));
  });
  REQUIRE(found);
  CHECK((*found)->parameters.front().front() == 2);
  CHECK(one.run.heard() == texts{"keep", "go on", "recall 2 of 1", "recall 2 of 2"});
}

TEST_CASE("where all replicas of a stage are lost that is said", "[manager]") {
  failed_run one{{0, 1, 2}};
  const auto found = one.recall([](const std::string&) {});
  REQUIRE_FALSE(found);
  CHECK_THAT(found.error(), ContainsSubstring("parameters has 0 of the"));
}

TEST_CASE("nobody is asked where nobody is lost, or the user has had enough",
          "[manager]") {
  failed_run whole{{}};
  CHECK_FALSE(whole.recall([](const std::string&) {}));
  for (const auto& what : whole.run.heard())
    CHECK_FALSE(what.starts_with("recall"));

  failed_run ended{{0}};
  std::atomic<bool> interrupted = false;
  ended.run.callbacks.interrupted = &interrupted;
  CHECK_FALSE(ended.recall([&](const std::string& what) {
    if (what == "recall 2 of 1")
      interrupted = true;
  }));
}

// Otherwise a run that resumes from that step would never make the evaluation.
TEST_CASE("a step counts as kept when its evaluation is done", "[manager]") {
  tiny::lone_run run{clock_kind::real};
  run.plan.copies.keep_steps = true;
  run.plan.copies.evaluate_every = 2;
  texts before;
  run.callbacks.report = [&](const progress&) { // long after the copies were made
    if (before.empty())
      run.board.post_snapshot(run.shown(2));
  };
  run.callbacks.evaluate = [&](int, const auto&) { before = run.heard(); };
  run.board.post_checkpoint(2);
  run
    .managed([&](const std::string& what) {
      if (what == "keep")
        run.board.post_copied();
      if (what == "hold")
        run.board.post_held();
      if (what == "go on")
        run.board.post_finished();
    })
    ->wait();
  CHECK(before == texts{"keep", "hold"});
}

} // namespace troupe::recall_test
