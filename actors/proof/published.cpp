// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/published.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace troupe::published {

namespace {

constexpr std::array names{
  "naive",  "gpipe",       "1f1b",       "chimera", "2bw",      "pipedream",
  "ampnet", "interleaved", "zb-h1",      "zb-h2",   "zb-v",     "zb-auto",
  "v-half", "v-min",       "looped_bfs", "hanayo",  "dualpipe", "dualpipev"};

int floor_of(int a, int b) {
  return a / b;
}

int ceiling_of(int a, int b) {
  return (a + b - 1) / b;
}

int number(const std::map<std::string, std::string>& parameters, const char* name,
           int otherwise) {
  const auto entry = parameters.find(name);
  if (entry == parameters.end())
    return otherwise;
  const auto& text = entry->second;
  if (text == "on" || text == "true")
    return 1;
  int value = 0; // for `off` and `false` too
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Number of microbatches of one direction in the run.
int total(const rule& paper_rule, const shape& dims) {
  return dims.microbatches * dims.steps / directions(paper_rule);
}

/// Microbatches held at once with forward doubling, of one direction's unit of k <= D
/// microbatches. When the unit's last forward begins, stage s holds all microbatches
/// except the ones whose backwards have ended.
/// \param d D
int doubled_held(int s, int d, int microbatches) {
  const int k = std::min(microbatches / 2, d);
  return k - std::max(0, ceiling_of(k, 2) + s - d);
}

/// PipeDream's lag of a version behind the microbatch number: 1F1B without a flush has
/// S-1-s other microbatches in flight. With vertical sync every stage uses the number
/// of stage 0.
int lag(const rule& paper_rule, const shape& dims, int s) {
  return paper_rule.vertical_sync ? dims.stages - 1 : dims.stages - 1 - s;
}

} // namespace

std::optional<rule> find(const std::string& name,
                         const std::map<std::string, std::string>& parameters) {
  if (std::ranges::find(names, std::string_view{name}) == names.end())
    return {};
  if (number(parameters, "pairs", 1)
      > 1) // several pairs of Chimera: only two directions are checked
    return {};
  rule result{.name = name};
  result.update_every = number(parameters, "update_every", result.update_every);
  result.vertical_sync = number(parameters, "vertical_sync", 0) != 0;
  result.forward_doubling = number(parameters, "forward_doubling", 0) != 0;
  result.max_active_keys =
    number(parameters, "max_active_keys", result.max_active_keys);
  result.min_update_frequency =
    number(parameters, "min_update_frequency", result.min_update_frequency);
  if (name == "interleaved" || name == "looped_bfs")
    result.stages_a_rank = number(parameters, "v", 2);
  if (name == "hanayo")
    result.stages_a_rank = 2 * number(parameters, "waves", 1);
  if (name == "zb-v" || name == "v-half" || name == "v-min" || name == "dualpipev")
    result.stages_a_rank = 2;
  return result;
}

bool flushes(const rule& paper_rule) {
  return paper_rule.name != "pipedream" && paper_rule.name != "2bw"
         && paper_rule.name != "ampnet";
}

int directions(const rule& paper_rule) {
  return paper_rule.name == "chimera" || paper_rule.name == "dualpipe" ? 2 : 1;
}

int ranks(const rule& paper_rule, const shape& dims) {
  return dims.stages / paper_rule.stages_a_rank;
}

// Stages go round the ranks (Narayanan et al. 2021; Lamy-Poirier 2023), or forth and
// back.
int host(const rule& paper_rule, const shape& dims, int s, int direction) {
  const int p = ranks(paper_rule, dims), index = s % p;
  if (direction > 0)
    return dims.stages - 1 - s;
  const bool round =
    paper_rule.name == "interleaved" || paper_rule.name == "looped_bfs";
  return round || s / p % 2 == 0 ? index : p - 1 - index;
}

split splits(const rule& paper_rule) {
  if (paper_rule.name.starts_with("dualpipe"))
    return split::partial;
  const bool splits_all =
    paper_rule.name.starts_with("zb-") || paper_rule.name.starts_with("v-");
  return splits_all ? split::full : split::none;
}

int minibatch(const rule& paper_rule, const shape& dims) {
  if (paper_rule.name == "pipedream")
    return paper_rule.update_every;
  if (paper_rule.name == "ampnet")
    return paper_rule.min_update_frequency;
  return dims.microbatches / directions(paper_rule);
}

int updates(const rule& paper_rule, const shape& dims) {
  return ceiling_of(total(paper_rule, dims), minibatch(paper_rule, dims));
}

int covered(const rule& paper_rule, const shape& dims, int u) {
  const int size = minibatch(paper_rule, dims);
  return std::min(size, total(paper_rule, dims) - u * size);
}

std::optional<int> last_covered(const rule& paper_rule, const shape& dims, int u) {
  if (paper_rule.name == "ampnet")
    return {};
  const int size = directions(paper_rule) * minibatch(paper_rule, dims);
  return std::min((u + 1) * size, dims.microbatches * dims.steps) - 1;
}

// m is the microbatch's index within a batch of M. Naive: one microbatch after another.
// GPipe (Huang et al. 2019): all forwards, then all backwards. 1F1B: S-1-s forwards to
// warm up, then one forward and one backward by turns, also without a flush.
// Chimera (Li and Hoefler 2021): 1F1B in both directions, in units of D = S
// microbatches. Every D/2 of a direction begin when the first stage is free of the
// previous D/2: after 2D slots. With forward doubling two forwards share a slot; units
// have 2D microbatches, and begin after 3D slots. Interleaved (Narayanan et al. 2021):
// forwards in groups of P microbatches, stage after stage of the rank. Backwards
// likewise from the last stage; 2(P-r-1) + (v-1)P forwards to warm up. Breadth-first
// (Lamy-Poirier 2023): all microbatches of one stage of the rank, then of the next.
// ZB-H1 and ZB-H2 (Qi et al. 2024): turns of an F, an I and a W, forwards S-1-r ahead
// or twice as many. Weight gradients are r turns behind or twice as many.
std::optional<std::int64_t> slot(const rule& paper_rule, const shape& dims,
                                 op operation, int s, int n) {
  const std::int64_t stages = dims.stages, batch = floor_of(n, dims.microbatches);
  const std::int64_t m = n % dims.microbatches;
  const bool forward = operation == op::forward;
  const auto one_f_one_b = [&](std::int64_t k) {
    return forward ? s + 2 * k : 2 * stages - 1 - s + 2 * k;
  };
  if (paper_rule.name == "ampnet" || paper_rule.name == "zb-auto"
      || paper_rule.name.starts_with("v-") || paper_rule.name == "zb-v"
      || paper_rule.name == "hanayo" || paper_rule.name.starts_with("dualpipe"))
    return {};
  const std::int64_t p = ranks(paper_rule, dims), v = paper_rule.stages_a_rank,
                     rank = s % p;
  const auto of_batch = [&](std::int64_t slots, std::int64_t slot_in_batch) {
    return batch * slots + slot_in_batch;
  };
  if (paper_rule.name == "interleaved") {
    const auto turn = forward ? s / p : v - 1 - s / p; // index among the rank's stages
    const auto i = m / p * v * p + turn * p + m % p;   // index among the rank's passes
    const auto warm_up = 2 * (p - rank - 1) + (v - 1) * p;
    const auto slot_in_batch = !forward      ? warm_up + 2 * i + 1
                               : i < warm_up ? i
                                             : warm_up + 2 * (i - warm_up);
    return of_batch(4 * v * (dims.microbatches + 2 * p), slot_in_batch);
  }
  if (paper_rule.name == "looped_bfs") {
    const auto turn = forward ? s / p : 2 * v - 1 - s / p;
    return of_batch(2 * v * dims.microbatches, turn * dims.microbatches + m);
  }
  if (paper_rule.name == "zb-h1" || paper_rule.name == "zb-h2") {
    const auto times = paper_rule.name == "zb-h1" ? 1 : 2;
    const auto turn = forward                            ? m - times * (stages - 1 - s)
                      : operation == op::weight_gradient ? m + times * s
                                                         : m;
    const auto in_turn = forward ? 0 : operation == op::weight_gradient ? 2 : 1;
    return of_batch(3 * (dims.microbatches + 4 * stages),
                    3 * (turn + 2 * stages) + in_turn);
  }
  if (paper_rule.name == "naive")
    return 2 * n + (forward ? 0 : 1);
  if (paper_rule.name == "gpipe")
    return 2 * batch * dims.microbatches + (forward ? m : dims.microbatches + m);
  if (!flushes(paper_rule))
    return one_f_one_b(n);
  const auto batch_begins = batch * 2 * (stages + dims.microbatches);
  if (paper_rule.name == "1f1b")
    return batch_begins + one_f_one_b(m);
  const auto k = m % (dims.microbatches / 2), half = stages / 2;
  if (paper_rule.forward_doubling) { // counted in halves of a slot
    const auto pair = k % stages / 2, which = k % 2, unit = 6 * stages * (k / stages);
    return 4 * batch_begins * 2 + unit
           + (forward ? 2 * (s + 2 * pair) + which
                      : 2 * (2 * stages - 1 - s + 4 * pair + 2 * which));
  }
  return 2 * batch_begins + k / half * 2 * stages + one_f_one_b(k % half);
}

// Flush: as many as the updates of all batches before. PipeDream (Narayanan et al.
// 2019): w(t+1) = w(t) - nu grad f(w_1(t-n+1), ..., w_n(t)). 2BW (Narayanan et al.
// 2021): W(t+1) = W(t)
// - nu grad f(W(t-1)). AMPNet (Gaunt et al. 2017) keeps no older weights.
std::optional<int> version_read(const rule& paper_rule, const shape& dims, int s,
                                int n) {
  if (paper_rule.name == "ampnet")
    return {};
  if (paper_rule.name == "pipedream")
    return floor_of(std::max(0, n - lag(paper_rule, dims, s)), paper_rule.update_every);
  const int batch = floor_of(n, dims.microbatches);
  return paper_rule.name == "2bw" ? std::max(0, batch - 1) : batch;
}

bool is_steady(const rule& paper_rule, const shape& dims) {
  return total(paper_rule, dims) >= 2 * (dims.stages + minibatch(paper_rule, dims));
}

// PipeDream: 1 + ceil((S-1-s) / K), and with vertical sync S for K = 1; 2BW: two on
// every stage.
int versions_kept(const rule& paper_rule, const shape& dims, int s) {
  if (paper_rule.name == "pipedream")
    return 1 + ceiling_of(lag(paper_rule, dims, s), paper_rule.update_every);
  return paper_rule.name == "2bw" ? 2 : 1;
}

std::optional<int> staleness(const rule& paper_rule, const shape& dims, int s, int n) {
  if (paper_rule.name == "ampnet")
    return {};
  if (paper_rule.name == "pipedream")
    return floor_of(n, paper_rule.update_every) - *version_read(paper_rule, dims, s, n);
  return paper_rule.name == "2bw" ? std::min(1, floor_of(n, dims.microbatches)) : 0;
}

// PipeDream: floor or ceil of (S-1-s) / K; 2BW: exactly 1 after the first batch;
// AMPNet, in a line of stages: ceil((max_active_keys - 1) / min_update_frequency).
int max_staleness(const rule& paper_rule, const shape& dims, int s) {
  if (paper_rule.name == "pipedream")
    return versions_kept(paper_rule, dims, s) - 1;
  if (paper_rule.name == "2bw")
    return 1;
  return paper_rule.name == "ampnet"
           ? ceiling_of(paper_rule.max_active_keys - 1, paper_rule.min_update_frequency)
           : 0;
}

// Interleaved: min(vM, 2(P-r-1) + (v-1)P + 1); breadth-first: all vM. ZB-H1: P. ZB-H2:
// 2P-1. ZB-V: 2P, of half as many layers each, on every rank. DualPipe: P+1. DualPipeV:
// 2P+1. All hold if the batch has enough microbatches to fill the pipeline.
//
// 1F1B: min(M, S-s); PipeDream and 2BW likewise, with the run's microbatches for M.
// GPipe: M. Chimera, D = S: from D/2+1 on the ranks at the ends to D in the middle,
// where a unit of D microbatches is full. That is min(D/2, D-r) of one direction and
// min(D/2, r+1) of the other. With forward doubling, from 3D/2+1 at the ends to 2D in
// the middle, for units of 2D microbatches.
std::optional<int> activations_held(const rule& paper_rule, const shape& dims,
                                    int rank) {
  const int m = dims.microbatches, total_microbatches = m * dims.steps,
            p = ranks(paper_rule, dims);
  if (paper_rule.name == "interleaved")
    return m % p == 0 ? std::optional{std::min(
             paper_rule.stages_a_rank * m,
             2 * (p - rank - 1) + (paper_rule.stages_a_rank - 1) * p + 1)}
                      : std::nullopt;
  if (paper_rule.name == "looped_bfs")
    return paper_rule.stages_a_rank * m;
  if (paper_rule.name == "zb-h1")
    return std::min(m, p);
  if (paper_rule.name == "zb-h2")
    return std::min(m, 2 * p - 1);
  if (paper_rule.name == "zb-v")
    return m >= 2 * p - 1 ? std::optional{2 * p} : std::nullopt;
  if (paper_rule.name == "dualpipe")
    return p + 1;
  if (paper_rule.name == "dualpipev")
    return 2 * p + 1;
  if (paper_rule.name == "hanayo" || paper_rule.name == "zb-auto"
      || paper_rule.name.starts_with("v-"))
    return {};
  if (paper_rule.name == "naive")
    return 1;
  if (paper_rule.name == "gpipe")
    return m;
  if (paper_rule.name == "1f1b")
    return std::min(m, dims.stages - rank);
  if (paper_rule.name == "ampnet")
    return std::min(total_microbatches, paper_rule.max_active_keys);
  if (paper_rule.name != "chimera")
    return std::min(total_microbatches, dims.stages - rank);
  if (paper_rule.forward_doubling)
    return doubled_held(rank, p, m) + doubled_held(p - 1 - rank, p, m);
  const int half_unit = std::min(m, dims.stages) / 2;
  return std::min(half_unit, dims.stages - rank) + std::min(half_unit, rank + 1);
}

batch_time times(const batch_time& batch, int batches, bool together) {
  const auto idle = batch.at_ends && !together ? batch.idle : batches * batch.idle;
  return {batches * (batch.makespan - batch.idle) + idle, idle, batch.at_ends};
}

// P ranks of v stages each. Interleaved and breadth-first, M a multiple of P: the
// bubble of 1F1B over v. ZB-H1: (P-1)(F+I-W), where W is not longer than I. Where F, I
// and W take equal time: ZB-H2 (P-1)F and ZB-V half of that, all idle time at the ends.
// DualPipe: (P/2-1)(F&B+B-3W) with F&B = F+B; DualPipeV has as many of its half stages.
// Hanayo (Liu et al. 2023), B = F and M a multiple of P: the bubble of 1F1B over 2w.
std::optional<batch_time> time_of_batch(const rule& paper_rule, const shape& dims,
                                        const action_times& each) {
  const auto [forward, backward, input, weight] = each;
  const std::int64_t s = dims.stages, m = dims.microbatches;
  const std::int64_t p = ranks(paper_rule, dims), v = paper_rule.stages_a_rank;
  const auto halves = splits(paper_rule) == split::full ? input + weight : backward;
  const auto busy = v * m * (forward + halves);
  const auto with_idle = [&](std::int64_t idle) {
    return batch_time{busy + idle, idle};
  };
  if (paper_rule.name == "naive")
    return with_idle((s - 1) * busy);
  if (paper_rule.name == "gpipe" || paper_rule.name == "1f1b")
    return with_idle((s - 1) * (forward + backward));
  if (paper_rule.name == "interleaved" || paper_rule.name == "looped_bfs")
    return m % p == 0 ? std::optional{with_idle((p - 1) * (forward + backward))}
                      : std::nullopt;
  if (paper_rule.name == "hanayo" && m % p == 0 && backward == forward)
    return with_idle((p - 1) * (forward + backward));
  const bool alike = forward == input && input == weight && backward == 2 * forward;
  if (paper_rule.name == "zb-h1" && m >= p && input + weight == 2 * forward
      && weight <= input)
    return with_idle((p - 1) * (forward + input - weight));
  if ((paper_rule.name == "zb-h2" || paper_rule.name == "zb-v") && m >= 2 * p - 1
      && alike)
    return batch_time{busy + (p - 1) * forward, (p - 1) * forward, true};
  if (paper_rule.name == "dualpipe" && m >= 2 * p && alike)
    return with_idle((p / 2 - 1) * 2 * forward);
  if (paper_rule.name == "dualpipev" && m >= 2 * p && alike)
    return with_idle((p - 1) * 2 * forward);
  if (paper_rule.forward_doubling)
    return m % (2 * s) == 0 && forward <= backward && backward <= 2 * forward
             ? std::optional{with_idle((s / 2 - 1) * (forward + backward))}
             : std::nullopt;
  if (paper_rule.name != "chimera" || m % s != 0)
    return {};
  if (backward == forward)
    return with_idle((s - 2) * forward);
  if (backward == 2 * forward)
    return with_idle((m / s + 1) * (s - 2) * forward);
  return {};
}

} // namespace troupe::published
