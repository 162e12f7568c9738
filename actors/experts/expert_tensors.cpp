#include "actors/experts/expert_tensors.hpp"

#include "kernels/arrays.hpp"

#include <algorithm>

namespace troupe {

expert_tensors::expert_tensors(const run_plan& plan, position where, int expert,
                               int stashes, rank_memory& memory, stream& on)
  : network_(plan.work->whole.experts[static_cast<std::size_t>(expert)].what),
    operations_of_stage_(plan.operations_of(where.stage)),
    sizes_(sizes_of_expert(plan, expert)),
    on_(on),
    stashes_("stashes of " + plan.name_of_expert(expert, where), stashes, sizes_.stash,
             memory.of(memory_use::activations)),
    answers_("answers of " + plan.name_of_expert(expert, where), 2 * sizes_.sources,
             sizes_.payload, memory.of(memory_use::passing)),
    scratch_(sizes_.scratch, memory.of(memory_use::passing)) {
  memory.of(memory_use::passing).use(scratch_.bytes());
}

std::int64_t expert_tensors::gather(const rows_by_source& by_source, float* to) {
  std::int64_t rows = 0;
  for (const auto& part : by_source) {
    if (part.rows > 0)
      arrays<float>::copy(part.payload.data(), part.rows * sizes_.width,
                          to + rows * sizes_.width, on_);
    rows += part.rows;
  }
  return rows;
}

void expert_tensors::compute(const rows_by_source& by_source) {
  const auto& a = by_source.front().what;
  const auto& loan = *std::ranges::find_if(by_source, [](const auto& part) {
                        return !!part.loan;
                      })->loan;
  const auto most = sizes_.rows * sizes_.sources * sizes_.width;
  if (count_of(by_source) == 0) { // only to set the gradients to 0
    frame<float> f;
    f.gradients = loan.gradients.data();
    f.on = &on_;
    return network_->weight_gradient(f);
  }
  auto& stash = held_[a.microbatch];
  if (a.what == op::forward)
    stash = stashes_.acquire();
  auto *const upper = scratch_.data(), *const lower = upper + padded(most);
  frame<float> f;
  f.x = stash.data();
  f.saved = stash.data() + padded(most);
  f.y = upper;
  f.dy = upper;
  f.dx = lower;
  f.kept = lower + padded(most);
  f.parameters = loan.parameters.now();
  f.on = &on_;
  if (a.what == op::forward) {
    f.samples = gather(by_source, stash.data());
    network_->forward(f);
    made_ = upper;
    return;
  }
  f.samples = gather(by_source, upper);
  f.gradients = loan.gradients.data();
  f.beta = loan.begins_sum ? 0.0F : 1.0F;
  network_->input_gradient(f);
  network_->weight_gradient(f);
  held_.erase(a.microbatch);
  made_ = lower;
}

std::vector<buffer> expert_tensors::results(const rows_by_source& by_source) {
  std::vector<buffer> result;
  const auto* from = made_;
  for (const auto& part : by_source) {
    auto& answer = result.emplace_back();
    if (part.rows == 0)
      continue;
    answer = answers_.acquire();
    const auto values = part.rows * sizes_.width;
    arrays<float>::copy(from, values, answer.data());
    from += values;
  }
  return result;
}

} // namespace troupe
