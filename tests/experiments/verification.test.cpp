// SPDX-License-Identifier: BSD-3-Clause
// Tests verify's additions to the proofs: the rule that the user asked for, and a
// second run.

#include "experiments/session/verification.hpp"

#include "actors/proof/proof.hpp"
#include "actors/proof/published.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/verified_catalog.hpp"
#include "plan/replica_rules.hpp"
#include "schedules/catalog/catalog.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <set>

namespace troupe::verification_test {

using Catch::Matchers::ContainsSubstring;

namespace {

run_request tiny_request(const std::string& schedule, const std::string& mesh) {
  auto o = tiny::options_of(schedule);
  o.data.batch = 8;
  o.schedules.microbatches = 4;
  o.schedules.steps = 3;
  o.mesh.axes = mesh;
  o.run.clock = "virtual";
  const auto shared = tiny::set_up_training(o);
  REQUIRE(shared);
  return shared->runs.front();
}

/// Data whose labels change after a number of reads.
class fickle_data : public data_set {
public:
  explicit fickle_data(std::shared_ptr<const data_set> good) : good_(std::move(good)) {
    // nop
  }

  void training(std::int64_t index, const sample_view& to) const override {
    good_->training(index, to);
    const auto before = read_++;
    if (before >= until)
      to.labels[0] = (to.labels[0] + 1) % 7;
    if (before == ends_at)
      std::raise(SIGINT);
  }

  std::int64_t evaluation_size() const override { return 0; }
  void evaluation(std::int64_t, const sample_view&) const override {}
  std::string description() const override { return "fickle"; }

  std::int64_t until = 1'000'000;
  std::int64_t ends_at = -1; // number of reads at which the user ends the program
  std::int64_t read() const { return read_; }

private:
  std::shared_ptr<const data_set> good_;
  mutable std::atomic<std::int64_t> read_ = 0;
};

} // namespace

TEST_CASE("a run is proved by the rule that was called for, not by what ran",
          "[verification]") {
  auto request = tiny_request("pipedream:vertical_sync=on", "pipe=4");
  CHECK(verify(request).holds());
  request.plan.sch = pipedream(1, false);
  const auto all = verify(request);
  CHECK_FALSE(all.holds());
  const auto wrong = std::ranges::find_if(all.proofs, &proof::fails);
  REQUIRE(wrong != all.proofs.end());
  CHECK(wrong->name == "formula");
  CHECK_THAT(wrong->detail, ContainsSubstring("by the formula"));
}

TEST_CASE("a second run of other bits is refused", "[verification]") {
  auto request = tiny_request("1f1b", "pipe=2,tensor=2");
  auto& work = *request.plan.work;
  const auto good = work.data;
  const auto steady = std::make_shared<fickle_data>(good);
  work.data = steady;
  CHECK(verify(request).holds());
  const auto fickle = std::make_shared<fickle_data>(good);
  const auto shards =
    request.plan.mesh[axis::tensor]; // each shard reads all samples of a run
  fickle->until = steady->read() - shards * work.batch * request.plan.dims.steps;
  work.data = fickle;
  const auto all = verify(request);
  REQUIRE(std::ranges::count_if(all.proofs, &proof::fails) == 1);
  CHECK(all.proofs.back().name == "again");
  CHECK_THAT(all.proofs.back().detail, ContainsSubstring("loss of minibatch 0 is"));
}

TEST_CASE("the first steps of a longer run are proved alone", "[verification]") {
  auto request = tiny_request("pipedream", "pipe=4");
  request.plan.copies.evaluate_every = 1; // no program evaluates here
  const auto all = verify_first(request, 2);
  CHECK(all.holds());
  CHECK(all.steps == 2);
  CHECK(all.sentence() == "replay, formula, memory hold over 2 steps");
  CHECK(verify_first(request, 1).sentence()
        == "replay, formula, memory hold over 1 step");
  CHECK(verify_first(request, 100).steps == 3);
  request.plan.sch = pipedream(1, true); // another rule than requested
  CHECK_FALSE(verify_first(request, 2).holds());
}

TEST_CASE("so many steps are proved that updates are whole, or a file's own",
          "[verification]") {
  auto request = tiny_request("pipedream:update_every=8", "pipe=2"); // M = 4
  request.plan.dims.steps = 7;
  for (const auto& [asked, proved] : {std::pair{1, 2}, {2, 2}, {3, 4}, {6, 6}, {7, 7}})
    CHECK(verify_first(request, asked).steps == proved);
  request.plan.dims.steps = 1; // no update of the run is complete
  CHECK(verify_first(request, 1).steps == 1);
  request.plan.sch.refuses = [](const shape& dims) -> std::string {
    return dims.steps == 5 ? "" : "the file has 5 steps";
  };
  request.plan.dims.steps = 5;
  CHECK(verify_first(request, 1).steps == 5);
}

TEST_CASE("first steps have the learning rates of the whole run", "[verification]") {
  auto request = tiny_request("1f1b", "pipe=2");
  auto& plan = request.plan;
  plan.work->optimizer.schedule = {.cosine = true};
  plan.dims.steps = 6;
  plan.keep.weights = true;
  const auto whole = perform(plan);
  auto first = plan;
  first.dims.steps = 3;
  const auto shorter = perform(first);
  first.work->optimizer.schedule.course = plan.work->batch * 6;
  const auto part = perform(first);
  REQUIRE(part.loss.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(part.loss[i] == whole.loss[i]);
  CHECK(shorter.loss[2] != whole.loss[2]);
  CHECK(verify_first(request, 3).holds()); // the loops use the same course
}

TEST_CASE("a verdict names what fails, and what nobody has published",
          "[verification]") {
  const proof good{"replay", verdict::holds, "equal to the bit"},
    bad{"plain loop", verdict::fails, "loss 3 differs"},
    unknown{"formula", verdict::no_formula, "none"};
  const auto said = [](std::vector<proof> proofs) {
    return verification{ending::finished, "", std::move(proofs), 4};
  };
  CHECK(said({good}).sentence() == "replay holds over 4 steps");
  CHECK(said({good, unknown}).sentence()
        == "replay holds over 4 steps; formula: no formula is published");
  CHECK(said({good, bad, unknown}).sentence()
        == "plain loop fails over 4 steps: loss 3 differs");
  CHECK_FALSE(said({good, bad}).holds());
  CHECK_FALSE(said({bad, good}).holds());
  CHECK(said({good, unknown}).holds());
  const verification failed{ending::failed, "out of memory\nat all", {}, 1};
  CHECK(failed.sentence() == "not proved over 1 step: out of memory");
  CHECK_FALSE(failed.holds());
}

TEST_CASE("the user ends a proof in the middle of its loops", "[verification]") {
  auto request = tiny_request("1f1b", "pipe=2");
  auto& work = *request.plan.work;
  const auto data = std::make_shared<fickle_data>(work.data);
  work.data = data;
  REQUIRE(perform(request.plan).outcome == ending::finished);
  data->ends_at = 2 * data->read() + 5; // during a second run
  const auto child = fork();            // only the child may be interrupted
  REQUIRE(child >= 0);
  if (child == 0) {
    (void)interruption(); // installs the handler
    const auto all = verify(request);
    const bool at_once = data->read() == data->ends_at + 1;
    _exit(all.outcome == ending::interrupted && all.proofs.empty() && at_once ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a run that fails does not hold", "[verification]") {
  auto request = tiny_request("1f1b", "pipe=2");
  request.plan.work->optimizer = {.name = "sgd", .rate = 1e30};
  const auto all = verify(request);
  CHECK(all.outcome == ending::failed);
  CHECK_FALSE(all.holds());
}

TEST_CASE("a proof of what nodes play on GPUs needs one here, the first",
          "[verification]") {
  auto plan = tiny_request("1f1b", "pipe=2").plan;
  plan.machine.processors = {{.gpu = 5, .tf32 = true}, {.gpu = 3, .tf32 = true}};
  prove_on_local_gpu(plan);
  CHECK(plan.machine.processors == std::vector<processor>{{.gpu = 0, .tf32 = true}});
  if (const auto why = absence_of_gpus(); !why.empty())
    CHECK(
      proof_error(plan)
      == "a proof also computes all stages on this machine, which has no usable GPU: "
           + why);
  plan.machine.processors = {{.gpu = 5}, {}};
  prove_on_local_gpu(plan);
  CHECK_THAT(proof_error(plan), ContainsSubstring("say --device cpu or --device cuda"));
}

TEST_CASE("nothing is proved of weights that are not finite", "[verification]") {
  auto request = tiny_request("1f1b", "pipe=2");
  request.plan.dims.steps = 1; // the only loss is that of the initial weights
  request.plan.work->optimizer.rate = 1e39;
  const auto all = verify(request, nullptr);
  CHECK_FALSE(all.holds());
  CHECK_THAT(all.failure, ContainsSubstring("the weights are not finite: "));
}

#ifndef TROUPE_SANITIZED // makes plans for minutes, without running any
TEST_CASE("with --all no run is too odd for bf16, and every one is of it",
          "[verification]") {
  const auto exact = verified_catalog(*parse({}, true));
  typed_options said;
  said.run.precision = "bf16";
  const auto all = verified_catalog(*parse(said, true));
  REQUIRE(all.size() == exact.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto shared = set_up(all[i]), as_fp32 = set_up(exact[i]);
    INFO((shared ? "" : shared.error()));
    REQUIRE(shared);
    REQUIRE(shared->runs.size() == as_fp32->runs.size());
    for (const auto& request : shared->runs) {
      CHECK(request.plan.work->whole.options.stored == precision::bf16);
      CHECK(always_holds(all[i]) == (request.plan.mesh[axis::tensor] == 1));
    }
    CHECK(always_holds(exact[i]));
  }
}

TEST_CASE("with --all every schedule learns in every way that it can",
          "[verification]") {
  std::set<std::string> seen;
  const auto all = verified_catalog(*parse({}, true));
  for (const auto& o : all) {
    const auto shared = set_up(o);
    INFO((shared ? "" : shared.error()));
    REQUIRE(shared);
    for (const auto& request : shared->runs) {
      const auto& how = request.plan.work->optimizer;
      const auto& name = request.plan.sch.name;
      const auto& model = request.plan.work->whole;
      const auto note = [&](bool has, const std::string& what) {
        if (has)
          seen.insert(name + " " + what);
      };
      note(how.name == "adamw", "adamw");
      note(how.momentum > 0, "momentum");
      note(how.weight_decay > 0, "decay");
      note(how.decay_only_matrices, "matrices");
      note(how.schedule.cosine && how.schedule.floor > 0, "cosine");
      note(how.schedule.warmup > 0, "warmup");
      note(how.clip > 0 && how.scope == clip_scope::stage, "clip=stage");
      note(how.clip > 0 && how.scope == clip_scope::network, "clip");
      note(model.tied().has_value(), model.experts.empty() ? "tied" : "tied moe");
      note(request.plan.mesh[axis::expert] > 1
             && request.plan.exchange->name == "zero1",
           "spread experts by zero1");
      note(request.plan.mesh[axis::tensor] > 1, "tensor shards");
      note(request.plan.sequence_parallel, "sequences");
      note(shares_out(request.plan, shared_out::gradients), "shared gradients");
      note(request.plan.recomputes(), "recomputes");
      note(request.plan.uneven != nullptr, "uneven");
    }
  }
  for (const auto& entry : catalog()) {
    const std::string name{entry.name};
    if (!published::find(name, {})) // a user's schedule: --all has fewer sizes
      continue;
    for (const char* what :
         {"adamw", "momentum", "decay", "matrices", "cosine", "warmup", "clip=stage"})
      CHECK(seen.contains(name + " " + what));
    const bool apart = name == "pipedream" || name == "ampnet";
    INFO(name);
    for (const char* what : {"clip", "tied", "tied moe", "sequences"})
      CHECK((seen.contains(name + " " + what) || apart));
    for (const char* what : {"spread experts by zero1", "tensor shards",
                             "shared gradients", "recomputes", "uneven"})
      CHECK((seen.contains(name + " " + what) || name == "ampnet" || name == "naive"));
  }
}
#endif

} // namespace troupe::verification_test
