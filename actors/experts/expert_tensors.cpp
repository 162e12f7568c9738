// SPDX-License-Identifier: BSD-3-Clause
#include "actors/experts/expert_tensors.hpp"

#include "kernels/arrays.hpp"
#include "plan/stage_experts.hpp"
#include "plan/stage_layers.hpp"

#include <algorithm>

namespace troupe {

expert_tensors::expert_tensors(const run_plan& plan, position where, int expert,
                               int stashes, int split, rank_memory& memory,
                               stream& compute_stream)
  : network_(plan.work->whole.experts[static_cast<std::size_t>(expert)].expert),
    operations_of_stage_(operations_of(plan, where.stage)),
    sizes_(sizes_of_expert(plan, expert)),
    stream_(compute_stream),
    recomputes_(plan.recomputes()),
    stashes_("stashes of " + name_of_expert(plan, expert, where), stashes, sizes_.stash,
             memory.account(memory_use::activations)),
    split_("split backwards of " + name_of_expert(plan, expert, where), split,
           sizes_.split, memory.account(memory_use::activations)),
    answers_("answers of " + name_of_expert(plan, expert, where), 2 * sizes_.sources,
             sizes_.payload, memory.account(memory_use::passing)),
    scratch_(sizes_.scratch, memory.account(memory_use::passing)) {
  memory.account(memory_use::passing).use(scratch_.bytes());
}

void expert_tensors::gather(const rows_by_source& by_source, float* to) {
  for (const auto& part : by_source) {
    const auto values = part.rows * sizes_.width;
    if (values > 0)
      arrays<float>::copy(part.payload.data(), values, to, stream_);
    to += values;
  }
}

/// The arrays of a microbatch: outputs and their gradients are in scratch memory,
/// unless the weight gradient is computed later.
frame<float> expert_tensors::frame_on(const held& h, const mail::lent_arrays& loan) {
  const auto most = padded(sizes_.rows * sizes_.sources * sizes_.width);
  auto *const upper = scratch_.data(), *const lower = upper + most;
  frame<float> f;
  f.x = h.stash.data();
  f.saved = h.stash.data() + most;
  f.y = upper;
  f.dx = lower;
  f.dy = h.split ? h.split.data() : upper;
  f.kept = h.split ? h.split.data() + most : lower + most;
  f.parameters = loan.parameters.now();
  f.gradients = loan.gradients.data();
  f.beta = loan.begins_sum ? 0.0F : 1.0F;
  f.compute_stream = &stream_;
  return f;
}

void expert_tensors::compute(const rows_by_source& by_source) {
  const auto& a = by_source.front().action;
  const auto& loan = *std::ranges::find_if(by_source, [](const auto& part) {
                        return !!part.loan;
                      })->loan;
  result_ = nullptr;
  const auto rows = count_of(by_source);
  if (rows == 0) { // only to set the gradients to 0
    frame<float> f;
    f.gradients = loan.gradients.data();
    f.compute_stream = &stream_;
    return network_->weight_gradient(f);
  }
  auto& h = held_[a.microbatch];
  if (goes_forward(a.op))
    h.stash = stashes_.acquire();
  if (a.op == op::input_gradient)
    h.split = split_.acquire();
  auto f = frame_on(h, loan);
  f.samples = rows;
  if (goes_forward(a.op)) {
    gather(by_source, h.stash.data());
    network_->forward(f);
    result_ = scratch_.data();
    if (recomputes_ && a.op == op::forward)
      held_.erase(a.microbatch);
    return;
  }
  if (goes_back(a.op)) {
    gather(by_source, h.split ? h.split.data() : scratch_.data());
    network_->input_gradient(f);
    result_ = static_cast<const float*>(f.dx);
  }
  if (!adds_gradient(a.op))
    return;
  network_->weight_gradient(f);
  held_.erase(a.microbatch);
}

std::vector<buffer> expert_tensors::results(const rows_by_source& by_source) {
  std::vector<buffer> result;
  const auto* from = result_;
  for (const auto& part : by_source) {
    auto& answer = result.emplace_back();
    if (part.rows == 0 || from == nullptr)
      continue;
    answer = answers_.acquire();
    const auto values = part.rows * sizes_.width;
    arrays<float>::copy(from, values, answer.data());
    from += values;
  }
  return result;
}

} // namespace troupe
