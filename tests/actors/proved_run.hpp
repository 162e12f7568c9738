// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/formula.hpp"
#include "actors/proof/proof.hpp"
#include "actors/proof/record_validation.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

#include <bit>
#include <stdexcept>

namespace tiny {

/// A run, its plan, and the published rule that was asked for.
struct proved_run {
  run_plan plan;
  run_result result;
  std::optional<published::rule> by;

  /// The messages of the proofs that fail, one line each.
  std::string refusals() const {
    std::string text;
    for (const auto& p : prove(plan, result, by))
      if (p.fails())
        text += p.name + ": " + p.detail + "\n";
    return text;
  }
};

inline proved_run run_of(run_plan plan) {
  keep_for_proofs(plan);
  auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  const auto by = rule_of(plan.sch);
  return {std::move(plan), std::move(result), by};
}

inline run_plan small(const schedule& sch, int data = 1,
                      const std::string& exchange = "ring") {
  auto plan = tiny::training_of(sch, {2, 4, 2}, clock_kind::virtual_time, tiny::gpt(4));
  plan.mesh[axis::data] = data;
  plan.exchange = find_exchange(exchange);
  plan.work->batch = 8 * data + 1;
  plan.machine.links.inside.latency = 100'000;
  return plan;
}

inline run_plan sharded(const schedule& sch) {
  auto plan = small(sch);
  plan.mesh[axis::tensor] = 2;
  plan.work->shards = *make_shards<float>(tiny::gpt(4), 2);
  return plan;
}

/// Schedules of every kind of update: flush, double-buffered, stashing, local rule.
inline std::vector<schedule> all_kinds() {
  return {gpipe(),     one_f_one_b(), chimera(),          two_bw(),
          pipedream(), pipedream(3),  pipedream(1, true), ampnet(3, 2)};
}

inline void flip_lowest_bit(float& value) {
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U);
}

inline std::string is_instead(double is, double should_be) {
  return " is " + exact(is) + " instead of " + exact(should_be);
}

/// A parameter of the second stage, and its place in the buckets.
struct place {
  std::size_t layer;
  const parameter* what;

  float& in(std::vector<std::vector<float>>& buckets, std::size_t index) const {
    return buckets[layer][static_cast<std::size_t>(what->offset) + index];
  }
};

inline place second_of_stage_1(const run_plan& plan) {
  const auto layer = static_cast<std::size_t>(plan.work->first_layers[1]);
  return {layer, &plan.work->whole.layers[layer]->parameters()[1]};
}

inline place called(const run_plan& plan, const std::string& name) {
  for (std::size_t l = 0; l < plan.work->whole.layers.size(); ++l)
    for (const auto& p : plan.work->whole.layers[l]->parameters())
      if (p.name == name)
        return {l, &p};
  throw std::logic_error("no parameter " + name);
}

} // namespace tiny
