// SPDX-License-Identifier: BSD-3-Clause
// The versions of the weights that a stage holds, the stored form of each, and the
// version that a planned pass reads.

#include "actors/pipeline/stage_versions.hpp"

#include "plan/stage_buckets.hpp"
#include "tests/actors/proved_run.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <cstring>

namespace troupe::stage_versions_test {

namespace {

run_plan plan_of(const schedule& sch, precision stored,
                 model_options model = tiny::gpt(4)) {
  model.stored = stored;
  return tiny::training_of(sch, {2, 4, 3}, clock_kind::virtual_time, model);
}

/// A plan of two stages with a block of 64 each; the first stage has the embedding.
run_plan plan_of_blocks(const schedule& sch, precision stored) {
  auto plan = plan_of(sch, stored, {"gpt", 2, 64, 2, 4, 16});
  plan.work->first_layers = {0, 3, 6};
  return plan;
}

/// The plain definition of bf16 rounding: the upper half of a float, to nearest, ties
/// to even.
float rounded(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits += 0x7FFF + ((bits >> 16) & 1);
  bits &= 0xFFFF0000;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// The versions of stage 0, with helpers that read values.
struct some_versions {
  explicit some_versions(const schedule& sch, precision stored)
    : plan(plan_of(sch, stored)) {}

  /// All values of a version, parameter by parameter, as a copy has the values.
  std::vector<float> values(int version) const {
    std::vector<float> result;
    const auto stored = versions.stored(version);
    const auto buckets = layer_buckets(plan, where);
    for (std::size_t b = 0; b < buckets.size(); ++b)
      for (const auto& p : buckets[b].owner->parameters()) {
        const auto first = result.size();
        result.resize(first + static_cast<std::size_t>(p.values()));
        copy_values(p, stored[b], 0, p.values(), result.data() + first);
      }
    return result;
  }

  /// The same values, rounded where older versions are stored as bf16.
  std::vector<float> as_older(std::vector<float> all) const {
    auto next = all.begin();
    for (const auto& bucket : layer_buckets(plan, where))
      for (const auto& p : bucket.owner->parameters())
        for (std::int64_t i = 0; i < p.values(); ++i, ++next)
          if (p.is_matrix() && p.name.find(".wte") == std::string::npos
              && p.name.find(".wpe") == std::string::npos)
            *next = rounded(*next);
    return all;
  }

  run_plan plan;
  position where{0, 0, 0};
  rank_memory memory;
  stream on;
  stage_versions versions{plan, where, pools_of(plan, where), memory, on};
};

} // namespace

TEST_CASE("older versions are kept as bf16 where runs store it",
          "[precision][actors]") {
  some_versions s{two_bw(), precision::bf16};
  const auto before = s.values(0);
  const auto planned = s.versions.address(0, 1);
  const auto* const master = planned.now().data;
  const auto room = s.versions.prepare_update({.from = 0});
  CHECK(planned.now().data == master); // until the update begins
  REQUIRE(room.save_previous);
  room.save_previous();
  CHECK(planned.now().data != master);
  CHECK(planned.now().matrices == precision::bf16);
  CHECK(room.from[1].data() == master);
  CHECK(room.to[1].data() == master);
  CHECK(s.versions.address(1, 1).now().data == master);
  CHECK(s.versions.address(1, 1).now().matrices == precision::fp32);
  for (std::size_t b = 0; b < room.to.size(); ++b)
    std::fill_n(room.to[b].data(), s.versions.values_of(b), 7.0F);
  CHECK((s.values(0) == s.as_older(before)));
  CHECK((s.as_older(before) != before));
  CHECK(std::ranges::count(s.values(1), 7.0F) == std::ssize(before));
}

TEST_CASE("an update in place, or of fp32, puts nothing aside", "[precision][actors]") {
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const bool in_place = GENERATE(true, false);
  if (stored == precision::bf16 && !in_place)
    return;
  some_versions s{two_bw(), stored};
  const auto before = s.values(0);
  const auto* const first = s.versions.address(0, 0).now().data;
  const auto room = s.versions.prepare_update({.from = 0, .in_place = in_place});
  CHECK(!room.save_previous);
  CHECK((room.from[0].data() == room.to[0].data()) == in_place);
  CHECK(room.from[0].data() == first);
  CHECK(s.versions.address(1, 0).now().data == room.to[0].data());
  if (!in_place)
    CHECK((s.values(0) == before));
}

// By hand: a stage of 2bw has two versions. Of a block of 64 with its norms and biases,
// 12 * 64 * 64 values are matrices of products.
TEST_CASE("an older version takes half the bytes of its matrices",
          "[precision][actors]") {
  const auto bytes = [&](const schedule& sch, precision stored) {
    const auto plan = plan_of_blocks(sch, stored);
    rank_memory memory;
    stream on;
    const position where{0, 0, 0};
    const auto sizes = pools_of(plan, where);
    stage_versions made{plan, where, sizes, memory, on};
    const auto& account = memory.account(memory_use::parameters);
    const auto reserved = account.reserved();
    made.prepare_update(
      {.from = 0, .in_place = sizes.versions + sizes.rounded_versions == 1});
    CHECK(account.peak() == reserved);
    return reserved;
  };
  const std::int64_t matrices = 12 * 64 * 64, words = 16 * 64, positions = 4 * 64,
                     vectors = (2 + 3 + 1 + 2 + 4 + 1) * 64,
                     whole = 4 * (matrices + words + positions + vectors);
  CHECK(bytes(one_f_one_b(), precision::fp32) == whole);
  CHECK(bytes(one_f_one_b(), precision::bf16) == whole);
  CHECK(bytes(two_bw(), precision::fp32) == 2 * whole);
  CHECK(bytes(two_bw(), precision::bf16) == 2 * whole - 2 * matrices);
}

// By hand: two copies of two bytes a value, where several microbatches read a version.
TEST_CASE("matrices stay packed where that is worth it", "[precision][actors]") {
  const auto bytes = [&](const schedule& sch, precision stored) {
    const auto plan = plan_of_blocks(sch, stored);
    rank_memory memory;
    stream on;
    const position where{0, 0, 0};
    const stage_versions made{plan, where, pools_of(plan, where), memory, on};
    return memory.account(memory_use::passing).peak();
  };
  CHECK(bytes(one_f_one_b(), precision::fp32) == 0);
  CHECK(bytes(one_f_one_b(), precision::bf16) == 2 * 2 * 12 * 64 * 64);
  CHECK(bytes(two_bw(), precision::bf16) == 2 * 2 * 12 * 64 * 64);
  CHECK(bytes(chimera(), precision::bf16) == 2 * 2 * 12 * 64 * 64);
  CHECK(bytes(pipedream(), precision::bf16) == 0); // an update a microbatch
  CHECK(bytes(pipedream(2), precision::bf16) == 2 * 2 * 12 * 64 * 64);
}

// The experts of a layer on this rank, and the shared expert, are layers within the
// layer.
TEST_CASE("what stays packed of experts is theirs", "[precision][actors]") {
  model_options model{"moe", 2, 64, 2, 4, 16};
  model.experts.count = 3;
  model.experts.shared = GENERATE(false, true);
  model.stored = precision::bf16;
  const auto whole = *make_network<float>(model);
  const auto& moe = *whole.layers[4]; // every second block has experts
  const auto experts = std::size_t{3} + (model.experts.shared ? 1 : 0);
  CHECK(moe.packed_copies() == 4 * experts);
  std::vector<float> bucket(static_cast<std::size_t>(moe.bucket()), 0.01F),
    x(static_cast<std::size_t>(moe.input_size(4)), 0.5F), y(x.size());
  const auto sizes = moe.sizes(4, 1);
  std::vector<float> saved(static_cast<std::size_t>(sizes.saved)),
    kept(static_cast<std::size_t>(sizes.kept)),
    scratch(static_cast<std::size_t>(sizes.scratch)),
    room(static_cast<std::size_t>(moe.packed_values()));
  std::vector<int> holds(moe.packed_copies(), packed_weights<float>::nothing);
  for (std::size_t i = 0; i < x.size();
       ++i) // different tokens, so that all experts get some
    x[i] = static_cast<float>(static_cast<int>(i * 7919 % 61) - 30) / 16;
  for (std::size_t i = 0; i < bucket.size(); ++i)
    bucket[i] = static_cast<float>(static_cast<int>(i * 104729 % 127) - 63) / 512;
  stream on{1, precision::bf16};
  frame<float> f;
  f.samples = 4;
  f.x = x.data();
  f.y = y.data();
  f.saved = saved.data();
  f.kept = kept.data();
  f.scratch = scratch.data();
  f.compute_stream = &on;
  f.parameters = bucket.data();
  moe.forward(f);
  const auto plain = y;
  f.parameters = {bucket.data(), precision::fp32, 5, {room.data(), holds.data()}};
  for (int microbatch = 0; microbatch < 2; ++microbatch) { // the second packs nothing
    moe.forward(f);
    CHECK((y == plain));
  }
  // Forward copies of the experts that got tokens, two at least, and of the shared one.
  CHECK(std::ranges::count(holds, 5) >= 2 * (model.experts.shared ? 3 : 2));
  for (std::size_t i = 0; i < holds.size(); ++i)
    CHECK((i % 2 == 0 || holds[i] == packed_weights<float>::nothing));
}

// Proofs repeat a run with whole versions, in fp32.
TEST_CASE("passes read the right bits of older versions", "[precision][actors]") {
  const auto sch = GENERATE(two_bw(), pipedream(), pipedream(3), pipedream(1, true));
  auto mesh = GENERATE(
    tiny::mesh_of_ranks{}, tiny::mesh_of_ranks{.data = 2},
    tiny::mesh_of_ranks{.data = 2, .exchange = "zero1", .clips = true},
    tiny::mesh_of_ranks{.data = 2, .exchange = "zero2"},
    tiny::mesh_of_ranks{.data = 2, .exchange = "zero3"},
    tiny::mesh_of_ranks{.data = 2, .exchange = "server:async"},
    tiny::mesh_of_ranks{.data = 2, .exchange = "server:staleness=1", .clips = true},
    tiny::mesh_of_ranks{.data = 2, .exchange = "hogwild"},
    tiny::mesh_of_ranks{.tensor = 2}, tiny::mesh_of_ranks{.experts = true},
    tiny::mesh_of_ranks{.data = 2, .expert = 2, .experts = true},
    tiny::mesh_of_ranks{.data = 4, .expert = 2, .exchange = "zero1", .experts = true});
  mesh.stored = precision::bf16;
  const auto clock = GENERATE(from_range(tiny::clocks()));
  if (!tests::tries(8, {mesh.text(), tiny::kind_of(sch)}))
    return;
  if (mesh.exchange == "hogwild" && clock == clock_kind::real)
    return; // no record holds this order
  INFO(sch.name << ' ' << mesh.text());
  auto plan = tiny::training_on(mesh, sch, {2, 4, 3}, clock);
  plan.machine.links.inside.latency = 100'000;
  CHECK(tiny::run_of(std::move(plan)).refusals() == "");
}

} // namespace troupe::stage_versions_test
