// SPDX-License-Identifier: BSD-3-Clause
// The gradients at both ends of a tied matrix after a meeting, for every way to share
// out the buckets of the matrix.

#include "actors/meetings/tie_meeting.hpp"

#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_layers.hpp"
#include "tests/actors/meeting_office.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <map>
#include <memory>

namespace troupe::tie_meeting_test {

using tiny::meeting_office;
using array = std::vector<float>;

namespace {

run_plan tied_plan(tiny::mesh_of_ranks mesh, int stages) {
  auto plan =
    tiny::training_on(mesh, one_f_one_b(), {stages, 4}, clock_kind::virtual_time);
  model_options model{"gpt", 4, 8, 2, 4, 12};
  model.tied = true;
  plan.work->whole = *make_network<float>(model);
  if (mesh.tensor > 1)
    plan.work->shards = *make_shards<float>(model, mesh.tensor);
  return plan;
}

/// The gradients of each bucket of a stage, as the data replicas have summed them.
using stage_gradients = std::vector<array>;

/// Gradients of all stages of a tensor shard in some update. The sum over both ends is
/// put into both, by the definition of a tied matrix.
struct defined_gradients {
  defined_gradients(const run_plan& plan, int tensor, std::mt19937& chance) {
    for (int s = 0; s < plan.dims.stages; ++s) {
      auto& of = before.emplace_back();
      for (const auto values : buckets_of(plan, {0, 0, s, tensor}))
        of.push_back(tiny::random_numbers(chance, values));
    }
    after = before;
    const auto tied = *network_of(plan, {0, 0, 0, tensor}).tied();
    auto& at_embedding = layer(plan, tied.embedding.layer);
    auto& at_head = layer(plan, tied.head.layer);
    for (std::int64_t i = 0; i < tied.values; ++i) {
      auto& e = at_embedding[static_cast<std::size_t>(tied.embedding.offset + i)];
      auto& h = at_head[static_cast<std::size_t>(tied.head.offset + i)];
      e = h = h + e;
    }
  }

  array& layer(const run_plan& plan, std::size_t of) {
    const auto& first = plan.work->first_layers;
    std::size_t s = 0;
    while (static_cast<std::size_t>(first[s + 1]) <= of)
      ++s;
    return after[s][of - static_cast<std::size_t>(first[s])];
  }

  std::vector<stage_gradients> before, after;
};

/// An optimizer shard at an end of the matrix. If buckets are shared out, the shard has
/// a share of the sum. A shard that holds whole buckets has meaningless numbers around
/// the share.
class tied_member {
public:
  tied_member(const run_plan& plan, position at) : plan_(plan), where(at) {
    for (const auto values : buckets_of(plan, where)) {
      pools_.push_back(
        std::make_unique<pool>("a test's gradients", 1, values, memory_));
      gradients_.push_back(pools_.back()->acquire());
    }
    const auto copies = tied_copies(plan, where);
    meets = std::make_unique<tie_meeting>(
      plan, where,
      std::make_shared<pool>("a test's copies", copies.buffers, copies.values,
                             memory_));
  }

  meeting_messages begin(const stage_gradients& summed) {
    for (std::size_t b = 0; b < summed.size(); ++b) {
      const auto held = held_of(b, summed[b]);
      std::fill_n(gradients_[b].data(), summed[b].size(), -1000.F);
      std::ranges::copy(held, place_of(b, summed[b]));
    }
    meets->expect(gradients_);
    meets->copy(on_);
    return meets->begin(tie_meeting::gradients_added);
  }

  void check(const stage_gradients& expected) {
    for (int times = 0; times < 2; ++times)
      meets->add(on_); // adds once
    for (std::size_t b = 0; b < expected.size(); ++b) {
      const auto held = held_of(b, expected[b]);
      const auto* const mine = place_of(b, expected[b]);
      CHECK(array(mine, mine + held.size()) == held);
      CHECK(std::count(gradients_[b].data(), gradients_[b].data() + expected[b].size(),
                       -1000.F)
            == static_cast<std::ptrdiff_t>(expected[b].size() - held.size()));
    }
    meets->next_update();
  }

private:
  std::int64_t begin_of(std::size_t b, const array& bucket) const {
    return shares_of(plan_, where)[b].begin(static_cast<std::int64_t>(bucket.size()));
  }
  array held_of(std::size_t b, const array& bucket) const {
    const auto share = shares_of(plan_, where)[b];
    return {bucket.begin() + begin_of(b, bucket),
            bucket.begin() + share.end(static_cast<std::int64_t>(bucket.size()))};
  }
  float* place_of(std::size_t b, const array& bucket) const {
    const bool whole = extent_of(plan_, shared_out::gradients) == bucket_extent::whole;
    return gradients_[b].data() + (whole ? begin_of(b, bucket) : 0);
  }

  const run_plan& plan_;
  stream on_;
  memory_account memory_;
  std::vector<std::unique_ptr<pool>> pools_;
  std::vector<buffer> gradients_;

public:
  position where;
  std::unique_ptr<tie_meeting> meets;
};

const std::vector<tiny::mesh_of_ranks> meshes{
  {},
  {.data = 2},
  {.data = 2, .exchange = "zero1"},
  {.data = 3, .exchange = "zero1"},
  {.data = 4, .exchange = "zero1"},
  {.data = 3, .exchange = "zero2"},
  {.data = 4, .exchange = "zero3"},
  {.tensor = 2},
  {.data = 3, .tensor = 2, .exchange = "zero1"},
};

} // namespace

TEST_CASE("both ends of a tied matrix have the sum of both gradients, and nothing else "
          "changes",
          "[meetings][tie]") {
  const auto& mesh = GENERATE(from_range(meshes));
  const int stages = GENERATE(1, 2, 4);
  const unsigned seed = GENERATE(range(0U, 6U));
  const auto plan = tied_plan(mesh, stages);
  INFO(mesh.text() << " in " << stages << " stages");
  constexpr std::size_t updates = 3;
  std::mt19937 chance{seed};
  std::vector<std::vector<defined_gradients>> all; // update, tensor shard
  for (std::size_t u = 0; u < updates; ++u)
    for (int t = 0; t < plan.mesh[axis::tensor]; ++t) {
      all.resize(u + 1);
      all[u].emplace_back(plan, t, chance);
    }
  std::vector<std::unique_ptr<tied_member>> members;
  meeting_office office{seed % 2 == 1};
  for (int s = 0; s < stages; ++s)
    for (int d = 0; d < plan.mesh[axis::data]; ++d)
      for (int t = 0; t < plan.mesh[axis::tensor]; ++t) {
        const position where{d, 0, s, t};
        CHECK(has_tied_end(plan, where) == (s == 0 || s == stages - 1));
        if (!has_tied_end(plan, where))
          continue;
        auto* const m =
          members.emplace_back(std::make_unique<tied_member>(plan, where)).get();
        std::vector<meeting_office::step> steps;
        for (std::size_t u = 0; u < updates; ++u) {
          const auto& of = all[u][static_cast<std::size_t>(t)];
          const auto stage = static_cast<std::size_t>(s);
          steps.push_back({{}, [=, &of] { return m->begin(of.before[stage]); }});
          steps.push_back(
            {[m] { return m->meets->is_done(tie_meeting::gradients_added); },
             [=, &of] {
               m->check(of.after[stage]);
               return meeting_messages{};
             }});
        }
        office.join({role::optimizer_shard, where}, meeting_kind::tie, *m->meets,
                    std::move(steps));
      }
  office.run(seed);
  CHECK((office.sums > 0) == (seed % 2 == 1));
}

TEST_CASE("a network that is not tied has no ends", "[meetings][tie]") {
  const auto plan =
    tiny::training_on({}, one_f_one_b(), {2, 4}, clock_kind::virtual_time);
  CHECK_FALSE(has_tied_end(plan, {0, 0, 0}));
  CHECK_FALSE(has_tied_end(tiny::simulation(one_f_one_b(), {2, 4}), {0, 0, 0}));
}

TEST_CASE("an end waits for the other one", "[meetings][tie]") {
  const auto plan = tied_plan({}, 2);
  const auto values = network_of(plan, {0, 0, 0}).tied()->values;
  tied_member embedding{plan, {0, 0, 0}}, head{plan, {0, 0, 1}};
  const auto done = [](tied_member& m) {
    return m.meets->is_done(tie_meeting::gradients_added);
  };
  std::mt19937 chance{1};
  const defined_gradients g{plan, 0, chance};
  CHECK_FALSE(done(embedding)); // the shard has not begun
  CHECK_FALSE(embedding.meets->waits_for());
  auto out = embedding.begin(g.before[0]);
  REQUIRE(out.size() == 1);
  CHECK(out[0].to == performer{role::optimizer_shard, {0, 0, 1}});
  CHECK(out[0].kind == traffic::tied);
  CHECK(out[0].bytes == 4 * values);
  REQUIRE(embedding.meets->waits_for());
  CHECK(embedding.meets->waits_for()->input
        == "the other end's gradient of the tied matrix");
  CHECK(embedding.meets->waits_for()->peer == "optimizer of stage 1");
  head.meets->receive(std::move(out[0]));
  CHECK_FALSE(done(head)); // that message came early
  embedding.meets->receive(std::move(head.begin(g.before[1])[0]));
  CHECK((done(embedding) && done(head)));
  CHECK_FALSE(embedding.meets->waits_for());
  embedding.check(g.after[0]);
  head.check(g.after[1]);
}

TEST_CASE("an end names who is missing, and nobody who has come", "[meetings][tie]") {
  const auto plan = tied_plan({.data = 3, .exchange = "zero1"}, 2);
  std::mt19937 chance{1};
  const defined_gradients g{plan, 0, chance};
  tied_member head{plan, {0, 0, 1}}, embedding{plan, {0, 0, 0}};
  CHECK(embedding.begin(g.before[0]).size() == 2);
  CHECK(embedding.meets->waits_for()->peer == plan.optimizer_of({0, 0, 1}));
  for (auto& letter : head.begin(g.before[1]))
    if (letter.to.where == embedding.where)
      embedding.meets->receive(std::move(letter));
  CHECK(embedding.meets->waits_for()->peer == plan.optimizer_of({1, 0, 1}));
}

TEST_CASE("who has nothing of the embedding waits for the other end of its head",
          "[meetings][tie]") {
  const auto plan = tied_plan({.data = 4, .exchange = "zero1"}, 1);
  std::mt19937 chance{1};
  const defined_gradients g{plan, 0, chance};
  tied_member last{plan, {3, 0, 0}};
  last.begin(g.before[0]);
  REQUIRE(last.meets->waits_for());
  CHECK(last.meets->waits_for()->peer == plan.optimizer_of({2, 0, 0}));
}

TEST_CASE("a part that comes twice is added once, and belongs to no other update",
          "[meetings][tie]") {
  const auto plan = tied_plan({}, 2);
  tied_member embedding{plan, {0, 0, 0}}, head{plan, {0, 0, 1}};
  std::mt19937 chance{1};
  const defined_gradients g{plan, 0, chance}, next{plan, 0, chance};
  const auto to_head = std::move(embedding.begin(g.before[0])[0]);
  head.meets->receive(mail::meeting_message{to_head}); // early, both times
  head.meets->receive(mail::meeting_message{to_head});
  const auto to_embedding = std::move(head.begin(g.before[1])[0]);
  embedding.meets->receive(mail::meeting_message{to_embedding});
  embedding.meets->receive(mail::meeting_message{to_embedding});
  embedding.check(g.after[0]);
  head.check(g.after[1]);
  embedding.meets->receive(mail::meeting_message{to_embedding}); // between two updates
  const auto second = std::move(embedding.begin(next.before[0])[0]);
  embedding.meets->receive(mail::meeting_message{to_embedding});
  CHECK_FALSE(embedding.meets->is_done(tie_meeting::gradients_added));
  head.meets->receive(mail::meeting_message{second});
  embedding.meets->receive(std::move(head.begin(next.before[1])[0]));
  embedding.check(next.after[0]);
  head.check(next.after[1]);
}

} // namespace troupe::tie_meeting_test
