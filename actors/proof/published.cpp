#include "actors/proof/published.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace troupe::published {

namespace {

constexpr std::array names{"naive",     "gpipe", "1f1b",  "chimera",
                           "pipedream", "2bw",   "ampnet"};

int floor_of(int a, int b) {
  return a / b;
}

int ceiling_of(int a, int b) {
  return (a + b - 1) / b;
}

int number(const std::map<std::string, std::string>& parameters, const char* name,
           int otherwise) {
  const auto found = parameters.find(name);
  if (found == parameters.end())
    return otherwise;
  const auto& text = found->second;
  if (text == "on" || text == "true")
    return 1;
  int value = 0; // also of off and false
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Microbatches of one direction of a stage in the run.
int total(const rule& by, const shape& dims) {
  return dims.microbatches * dims.steps / directions(by);
}

/// PipeDream's lag behind the microbatch itself: 1F1B without a flush has S-1-s others
/// in flight behind it, vertical sync counts those of stage 0 on every stage.
int lag(const rule& by, const shape& dims, int s) {
  return by.vertical_sync ? dims.stages - 1 : dims.stages - 1 - s;
}

} // namespace

std::optional<rule> find(const std::string& name,
                         const std::map<std::string, std::string>& parameters) {
  if (std::ranges::find(names, std::string_view{name}) == names.end())
    return {};
  if (number(parameters, "pairs", 1)
      > 1) // of Chimera's: two directions are judged here
    return {};
  rule result{.name = name};
  result.update_every = number(parameters, "update_every", result.update_every);
  result.vertical_sync = number(parameters, "vertical_sync", 0) != 0;
  result.max_active_keys =
    number(parameters, "max_active_keys", result.max_active_keys);
  result.min_update_frequency =
    number(parameters, "min_update_frequency", result.min_update_frequency);
  return result;
}

bool flushes(const rule& by) {
  return by.name != "pipedream" && by.name != "2bw" && by.name != "ampnet";
}

int directions(const rule& by) {
  return by.name == "chimera" ? 2 : 1;
}

int stage_at(const shape& dims, int rank, int direction) {
  return direction == 0 ? rank : dims.stages - 1 - rank;
}

int minibatch(const rule& by, const shape& dims) {
  if (by.name == "pipedream")
    return by.update_every;
  if (by.name == "ampnet")
    return by.min_update_frequency;
  return dims.microbatches / directions(by);
}

int updates(const rule& by, const shape& dims) {
  return ceiling_of(total(by, dims), minibatch(by, dims));
}

int covered(const rule& by, const shape& dims, int u) {
  const int size = minibatch(by, dims);
  return std::min(size, total(by, dims) - u * size);
}

std::optional<int> last_covered(const rule& by, const shape& dims, int u) {
  if (by.name == "ampnet")
    return {};
  const int both = directions(by) * minibatch(by, dims);
  return std::min((u + 1) * both, dims.microbatches * dims.steps) - 1;
}

// In a batch of M, microbatch m of it. Naive: one after another. GPipe (Huang et al.
// 2019): all forwards, then all backwards. 1F1B: S-1-s forwards to warm up, then one
// forward and one backward by turns, also without a flush. Chimera (Li and Hoefler
// 2021): 1F1B in both directions, in units of D = S microbatches, every D/2 of a
// direction beginning when the first stage is free of those before: after 2D slots.
std::optional<std::int64_t> slot(const rule& by, const shape& dims, op what, int s,
                                 int n) {
  const std::int64_t stages = dims.stages, batch = floor_of(n, dims.microbatches);
  const std::int64_t m = n % dims.microbatches;
  const bool forward = what == op::forward;
  const auto one_f_one_b = [&](std::int64_t k) {
    return forward ? s + 2 * k : 2 * stages - 1 - s + 2 * k;
  };
  if (by.name == "ampnet")
    return {};
  if (by.name == "naive")
    return 2 * n + (forward ? 0 : 1);
  if (by.name == "gpipe")
    return 2 * batch * dims.microbatches + (forward ? m : dims.microbatches + m);
  if (!flushes(by))
    return one_f_one_b(n);
  const auto batch_begins = batch * 2 * (stages + dims.microbatches);
  if (by.name == "1f1b")
    return batch_begins + one_f_one_b(m);
  const auto k = m % (dims.microbatches / 2), half = stages / 2;
  return 2 * batch_begins + k / half * 2 * stages + one_f_one_b(k % half);
}

// Flush: the updates of all batches before. PipeDream (Narayanan et al. 2019): w(t+1) =
// w(t) - nu grad f(w_1(t-n+1), ..., w_n(t)). 2BW (Narayanan et al. 2021): W(t+1) = W(t)
// - nu grad f(W(t-1)). AMPNet (Gaunt et al. 2017) keeps no weights back.
std::optional<int> version_read(const rule& by, const shape& dims, int s, int n) {
  if (by.name == "ampnet")
    return {};
  if (by.name == "pipedream")
    return floor_of(std::max(0, n - lag(by, dims, s)), by.update_every);
  const int batch = floor_of(n, dims.microbatches);
  return by.name == "2bw" ? std::max(0, batch - 1) : batch;
}

bool is_steady(const rule& by, const shape& dims) {
  return total(by, dims) >= 2 * (dims.stages + minibatch(by, dims));
}

// PipeDream: 1 + ceil((S-1-s) / K), and with vertical sync S for K = 1; 2BW: two, on
// all stages alike.
int versions_kept(const rule& by, const shape& dims, int s) {
  if (by.name == "pipedream")
    return 1 + ceiling_of(lag(by, dims, s), by.update_every);
  return by.name == "2bw" ? 2 : 1;
}

std::optional<int> staleness(const rule& by, const shape& dims, int s, int n) {
  if (by.name == "ampnet")
    return {};
  if (by.name == "pipedream")
    return floor_of(n, by.update_every) - *version_read(by, dims, s, n);
  return by.name == "2bw" ? std::min(1, floor_of(n, dims.microbatches)) : 0;
}

// PipeDream: floor or ceil of (S-1-s) / K; 2BW: exactly 1 after the first batch;
// AMPNet, in a line of stages: ceil((max_active_keys - 1) / min_update_frequency).
int max_staleness(const rule& by, const shape& dims, int s) {
  if (by.name == "pipedream")
    return versions_kept(by, dims, s) - 1;
  if (by.name == "2bw")
    return 1;
  return by.name == "ampnet"
           ? ceiling_of(by.max_active_keys - 1, by.min_update_frequency)
           : 0;
}

// 1F1B: min(M, S-s) (in a stream of the run's microbatches, not the batch's); GPipe: M;
// Chimera: D/2+1 on the ranks at the ends to D in the middle, D = S, where a unit of D
// microbatches is full: min(D/2, D-r) of one direction and min(D/2, r+1) of the other.
int activations_held(const rule& by, const shape& dims, int rank) {
  const int m = dims.microbatches, all = m * dims.steps;
  if (by.name == "naive")
    return 1;
  if (by.name == "gpipe")
    return m;
  if (by.name == "1f1b")
    return std::min(m, dims.stages - rank);
  if (by.name == "ampnet")
    return std::min(all, by.max_active_keys);
  if (by.name != "chimera")
    return std::min(all, dims.stages - rank);
  const int half_unit = std::min(m, dims.stages) / 2;
  return std::min(half_unit, dims.stages - rank) + std::min(half_unit, rank + 1);
}

std::optional<batch_time> time_of_batch(const rule& by, const shape& dims,
                                        std::int64_t forward, std::int64_t backward) {
  const std::int64_t s = dims.stages, m = dims.microbatches;
  const auto busy = m * (forward + backward);
  const auto with_idle = [&](std::int64_t idle) {
    return batch_time{busy + idle, idle};
  };
  if (by.name == "naive")
    return with_idle((s - 1) * busy);
  if (by.name == "gpipe" || by.name == "1f1b")
    return with_idle((s - 1) * (forward + backward));
  if (by.name != "chimera" || m % s != 0)
    return {};
  if (backward == forward)
    return with_idle((s - 2) * forward);
  if (backward == 2 * forward)
    return with_idle((m / s + 1) * (s - 2) * forward);
  return {};
}

} // namespace troupe::published
