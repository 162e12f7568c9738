#include "actors/proof/proof.hpp"

#include "actors/costs.hpp"
#include "actors/proof/replay.hpp"
#include "schedules/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <stdexcept>

namespace troupe {

namespace {

/// Finds the largest relative difference over all tensors of two lists of buckets.
struct comparison {
  difference worst;

  void compare(const network<float>& whole, const std::vector<std::vector<float>>& a,
               const std::vector<std::vector<float>>& b, const std::string& kind) {
    for (std::size_t l = 0; l < whole.layers.size(); ++l)
      for (const auto& p : whole.layers[l]->parameters())
        compare(a[l].data() + p.offset, b[l].data() + p.offset, p.values(),
                kind + " " + p.name);
  }

  template <class Scalar>
  void compare(const Scalar* a, const Scalar* b, std::int64_t n,
               const std::string& name) {
    double apart = 0, norm = 0;
    bool same = true;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      same = same && a[i] == b[i];
      apart += (x - y) * (x - y);
      norm += y * y;
    }
    const double ratio = std::sqrt(apart) / (norm > 0 ? std::sqrt(norm) : 1);
    if (!same && (worst.none() || !(ratio <= worst.relative))) { // or it is NaN
      worst.relative = ratio;
      worst.where = name;
    }
  }
};

trained result_of(const run_result& result) {
  return {result.loss, result.parameters, result.gradients};
}

/// What tensor shards sum, and experts that serve several data replicas, one device
/// sums in another order.
constexpr double tolerance_of_shards = 1e-5;

proof compared(const std::string& name, const run_plan& plan, const run_result& result,
               const trained& expected) {
  const auto apart = between(plan.work->whole, result_of(result), expected);
  const bool elsewhere = plan.tensor > 1 || plan.expert > 1;
  const bool holds =
    apart.none() || (elsewhere && apart.relative <= tolerance_of_shards);
  return {name, holds, apart.text()};
}

plain_plan plain_of(const run_plan& plan) {
  const auto& work = *plan.work;
  return {.whole = work.whole,
          .first_layers = work.first_layers,
          .data = *work.data,
          .batches = plan.batches(),
          .steps = plan.dims.steps,
          .replicas = plan.replicas(),
          .update_every =
            update_size(plan.sch, plan.dims) / replicas_of(plan.sch.where),
          .sum = [&plan](const std::vector<float*>& arrays,
                         std::int64_t n) { sum_replicas(plan, arrays, n); },
          .optimizer = work.optimizer,
          .norm_shares = plan.share_of({}).count,
          .directions = replicas_of(plan.sch.where),
          .sum_microbatch =
            plan.shares_out(shared_out::gradients)
              ? [&plan](const std::vector<float*>& arrays,
                        std::int64_t n) { sum_data_replicas(plan, arrays, n); }
              : std::function<void(const std::vector<float*>&, std::int64_t)>{},
          .weights = work.weights};
}

/// The formula's training: each stage reads the version that the schedule names.
proof by_formula(const run_plan& plan, const run_result& result) {
  auto plain = plain_of(plan);
  plain.reads = [&plan](int stage, int k) {
    return *version_read(plan.sch, plan.dims, stage,
                         microbatch_of(plan.sch.where, plan.dims, 0, k));
  };
  return compared("formula", plan, result, train_plainly(plain));
}

/// "stage 2: F5 read version 3, by the rule 4".
std::optional<std::string> first_wrong_version(const run_plan& plan,
                                               const record& ran) {
  const auto& sch = plan.sch;
  for (const auto& row : ran) {
    int updates = 0;
    for (const auto& s : row) {
      if (s.what.what == op::update) {
        updates += !s.part;
        continue;
      }
      const int expected =
        version_read(sch, plan.dims, s.what.stage, s.what.microbatch).value_or(updates);
      if (s.version != expected)
        return to_string(s.what, true) + " read version " + std::to_string(s.version)
               + ", by the rule " + std::to_string(expected);
    }
  }
  return {};
}

/// A local rule's bounds: what is in flight at stage 0, and what an update covers.
std::optional<std::string> broken_bound(const run_plan& plan, const record& ran) {
  const int keys = std::get<backward_first>(plan.sch.order).max_active_keys;
  const auto stages = static_cast<std::size_t>(plan.dims.stages);
  for (std::size_t rank = 0; rank < ran.size(); ++rank) {
    int in_flight = 0, summed = 0, left = plan.dims.total();
    for (const auto& s : ran[rank]) {
      if (s.part)
        continue;
      in_flight += (s.what.what == op::forward) - (s.what.what == op::backward);
      summed += s.what.what == op::backward;
      left -= s.what.what == op::backward;
      if (rank % stages == 0 && in_flight > keys)
        return "stage 0 had " + std::to_string(in_flight) + " microbatches in flight";
      if (s.what.what != op::update)
        continue;
      if (s.gradients != summed
          || summed != std::min(plan.sch.update_every, left + summed))
        return "an update of stage " + std::to_string(rank % stages) + " covered "
               + std::to_string(s.gradients) + " gradients";
      summed = 0;
    }
    if (left != 0 || summed != 0)
      return "stage " + std::to_string(rank % stages) + " left gradients behind";
  }
  return {};
}

/// Where a record in virtual time leaves the prediction.
std::optional<std::string> first_surprise(const run_plan& plan, const record& ran) {
  const auto slices =
    slice<float>::cut_at(plan.work->whole, plan.work->first_layers, 1);
  const auto slice_at = [&](int stage) -> const slice<float>& {
    return slices[static_cast<std::size_t>(stage)];
  };
  const auto samples_of = [&](const action& a) {
    return static_cast<double>(plan.batches().samples_of(a.microbatch));
  };
  const auto operations = [&](const action& a) {
    if (a.what == op::update) {
      std::int64_t values = 0;
      for (const auto& l : slice_at(a.stage).layers())
        values += l->bucket();
      return update_operations(values);
    }
    const double forward = slice_at(a.stage).operations() * samples_of(a);
    return a.what == op::backward ? 2 * forward : forward;
  };
  const auto cost = [&](const action& a) {
    return plan.cost({.kind = static_cast<int>(a.what),
                      .stage = a.stage,
                      .operations = operations(a)});
  };
  const auto latency = [&](const action& a) {
    const int boundary = a.what == op::forward ? a.stage : a.stage - 1;
    const auto values = slice_at(boundary).layers().back()->output();
    return plan.link.of(samples_of(a) * static_cast<double>(values) * sizeof(float));
  };
  const auto expected = predict(plan.sch, plan.dims, cost, latency);
  for (std::size_t rank = 0; rank < ran.size(); ++rank)
    for (std::size_t i = 0; i < std::max(ran[rank].size(), expected[rank].size());
         ++i) {
      if (i >= ran[rank].size() || i >= expected[rank].size()
          || ran[rank][i].what != expected[rank][i].what
          || ran[rank][i].start != expected[rank][i].start)
        return "rank " + std::to_string(rank) + " leaves the prediction at its action "
               + std::to_string(i);
    }
  return {};
}

proof judged(const std::optional<std::string>& wrong, const std::string& praise) {
  return {"formula", !wrong.has_value(), wrong.value_or(praise)};
}

/// Where servers, or the replicas themselves, did not apply the updates of each data
/// replica once, or answered one who was too far ahead of the slowest.
std::optional<std::string> first_wrong_access(const run_plan& plan,
                                              const run_result& result) {
  std::vector<std::vector<int>> updates; // by stage: of each data replica
  for (int s = 0; s < plan.dims.stages; ++s) {
    auto& of_stage = updates.emplace_back();
    for (int d = 0; d < plan.data; ++d)
      of_stage.push_back(static_cast<int>(std::ranges::count_if(
        result.actions[static_cast<std::size_t>(plan.rank_of({d, 0, s}))],
        [&](const sample& a) {
          return !a.part && a.what.what == op::update && a.what.stage == s
                 && a.what.replica == 0;
        })));
  }
  for (std::size_t i = 0; i < result.accesses.size(); ++i) {
    const auto stage = i % static_cast<std::size_t>(plan.dims.stages);
    const bool has_some =
      plan.updates_are_by(update_by::servers) || i == stage; // the first replica's
    std::vector<int> applied(static_cast<std::size_t>(plan.data)), answered = applied;
    for (const auto& [data, update] : result.accesses[i]) {
      const auto d = static_cast<std::size_t>(data);
      applied[d] += update;
      answered[d] += !update;
      const int ahead = applied[d] - std::ranges::min(applied);
      if (!update && ahead > plan.exchange->staleness.value_or(ahead))
        return "data replica " + std::to_string(data) + " got an answer "
               + std::to_string(ahead) + " updates ahead of the slowest";
    }
    if (has_some && (applied != updates[stage] || answered != updates[stage]))
      return "a share of stage " + std::to_string(stage)
             + " was not updated and read once an update of each data replica";
  }
  return {};
}

/// When a stage of a data replica asked for its n-th update, at the earliest: when the
/// last of its gradients had been made; and when the update had been made.
struct update_times {
  nanoseconds asked;
  nanoseconds made;
};

std::vector<update_times> update_times_of(const std::vector<sample>& row, int stage) {
  std::vector<update_times> result;
  std::vector<nanoseconds> gradients;
  std::size_t covered = 0;
  for (const auto& s : row) {
    if (s.part || s.what.stage != stage || s.what.replica != 0)
      continue;
    if (s.what.what == op::update) {
      covered += static_cast<std::size_t>(s.gradients);
      result.push_back({gradients.at(covered - 1), s.end});
    } else if (s.what.what == op::backward || s.what.what == op::weight_gradient) {
      gradients.push_back(s.end);
    }
  }
  return result;
}

/// Where the ranks' own clocks say that an answer came before the slowest replica was
/// near enough: this does not rest on what servers say of themselves.
std::optional<std::string> first_early_answer(const run_plan& plan, const record& ran) {
  const auto bound = plan.exchange->staleness;
  for (int s = 0; s < plan.dims.stages && bound; ++s) {
    std::vector<std::vector<update_times>> all;
    for (int d = 0; d < plan.data; ++d)
      all.push_back(
        update_times_of(ran[static_cast<std::size_t>(plan.rank_of({d, 0, s}))], s));
    for (std::size_t d = 0; d < all.size(); ++d)
      for (auto n = static_cast<std::size_t>(*bound); n < all[d].size(); ++n)
        for (const auto& other : all)
          if (all[d][n].made < other[n - static_cast<std::size_t>(*bound)].asked)
            return "data replica " + std::to_string(d)
                   + " had the answer to its update " + std::to_string(n) + " of stage "
                   + std::to_string(s) + " before the slowest could push";
  }
  return {};
}

/// What can be said without the record where updates are of one data replica each: the
/// versions that it read, and who was answered when.
proof of_updates_apart(const run_plan& plan, const run_result& result) {
  auto wrong = first_wrong_version(plan, result.actions);
  if (!wrong && plan.sch.local_rule())
    wrong = broken_bound(plan, result.actions);
  if (!wrong)
    wrong = first_wrong_access(plan, result);
  if (!wrong)
    wrong = first_early_answer(plan, result.actions);
  return judged(wrong, "versions and answers are the rule's");
}

proof of_local_rule(const run_plan& plan, const run_result& result) {
  auto wrong = first_wrong_version(plan, result.actions);
  if (!wrong)
    wrong = broken_bound(plan, result.actions);
  if (plan.clock == clock_kind::real || !plan.work->whole.experts.empty())
    return judged(wrong, "versions and bounds are the rule's");
  if (!wrong)
    wrong = first_surprise(plan, result.actions);
  return judged(wrong, "order, times and versions are the rule's");
}

} // namespace

std::string difference::text() const {
  if (none())
    return "equal to the bit";
  char number[32];
  std::snprintf(number, sizeof number, "%.3g", relative);
  return "relative difference " + std::string{number} + " in " + where;
}

difference between(const network<float>& whole, const trained& a, const trained& b) {
  if (a.loss.size() != b.loss.size())
    return {std::numeric_limits<double>::infinity(),
            "the number of losses, " + std::to_string(a.loss.size()) + " instead of "
              + std::to_string(b.loss.size())};
  comparison all;
  all.compare(a.loss.data(), b.loss.data(), static_cast<std::int64_t>(a.loss.size()),
              "losses");
  all.compare(whole, a.gradients, b.gradients, "gradient of");
  all.compare(whole, a.parameters, b.parameters, "parameter");
  return all.worst;
}

bool can_be_replayed(const run_plan& plan) {
  return plan.clock == clock_kind::virtual_time
         || !plan.updates_are_by(update_by::itself);
}

std::vector<proof> prove(const run_plan& plan, const run_result& result) {
  std::vector<proof> proofs;
  const bool together = plan.updates_are_by(update_by::all);
  if (!plan.sch.asynchronous() && together)
    proofs.push_back(
      compared("plain loop", plan, result, train_plainly(plain_of(plan))));
  try {
    proofs.push_back(
      compared("replay", plan, result, replay(plan, result.actions, result.accesses)));
  } catch (const std::logic_error& nonsense) {
    proofs.push_back({"replay", false, nonsense.what()});
  }
  const bool has_copies = replicas_of(plan.sch.where) * plan.tensor > 1;
  if (has_copies || (plan.data > 1 && plan.replicas_agree()))
    proofs.push_back({plan.replicas_agree() ? "replicas" : "directions",
                      result.odd_stage.empty(),
                      result.odd_stage.empty()
                        ? "equal to the bit"
                        : result.odd_stage + " has other parameters than replica 0"});
  if (!together) {
    proofs.push_back(of_updates_apart(plan, result));
  } else if (plan.sch.local_rule()) {
    proofs.push_back(of_local_rule(plan, result));
  } else if (const auto wrong = first_wrong_version(plan, result.actions)) {
    proofs.push_back({"formula", false, *wrong});
  } else {
    proofs.push_back(by_formula(plan, result));
  }
  return proofs;
}

} // namespace troupe
