// SPDX-License-Identifier: BSD-3-Clause
// A user's schedule: GPipe that admits only two microbatches at a time. A rank then
// holds two activations and not all. troupe checks a schedule before the run, and draws
// the fault of a schedule that cannot work. Training has the same bits as with every
// other flush schedule.
//
//   slot    0  1  2  3  4  5  6  7  8  9 10 11           2 stages, 4 microbatches
//   rank 0  F0 F1 .  .  B0 B1 F2 F3 .  .  B2 B3
//   rank 1  .  F0 F1 B0 B1 .  .  F2 F3 B2 B3

#include <troupe/troupe.hpp>

#include <iostream>

namespace {

constexpr int at_once = 2;

std::int64_t slot(troupe::op what, int stage, int k, const troupe::shape& dims) {
  const int wave = k / at_once, place = k % at_once;
  const int length = 2 * (at_once + dims.stages - 1); // slots of a wave
  const int begin = wave * length;
  return what == troupe::op::forward
           ? begin + place + stage
           : begin + length / 2 + place + dims.stages - 1 - stage;
}

// Wrong on purpose: each backward is before the forward that the backward needs.
std::int64_t backwards_first(troupe::op what, int stage, int k, const troupe::shape&) {
  return what == troupe::op::forward ? 100 + k + stage : k + stage;
}

} // namespace

int main() {
  const troupe::schedule waves{.name = "waves", .order = slot};
  const troupe::schedule wrong{.name = "wrong", .order = backwards_first};
  const auto fault = troupe::check(wrong, {.stages = 2, .microbatches = 4});
  if (!fault)
    return 1;
  std::cout << wrong.name << ": " << to_string(*fault) << "\n\n";

  const troupe::model_options gpt{.layers = 4, .width = 32, .length = 32};
  const auto data = troupe::open_data("synthetic", gpt, 1);
  double loss = 0;
  for (const auto& orders : {troupe::gpipe(), waves}) {
    troupe::training_job job{
      .model = gpt, .data = data.value(), .pipeline_schedule = orders};
    job.stages = 4;
    job.steps = 20;
    job.virtual_time = true;
    const auto result = troupe::train(job);
    if (!result || result->outcome != troupe::ending::finished) {
      std::cerr << (result ? result->failure : result.error()) << '\n';
      return 1;
    }
    std::cout << orders.name << ": bubble " << result->bubble << ", rank 0 holds "
              << result->peak_activations[0] << " activations, loss "
              << result->loss.back() << '\n';
    if (orders.name == "waves"
        && (result->loss.back() != loss || result->peak_activations[0] != at_once))
      return 1;
    loss = result->loss.back();
  }
  return 0;
}
