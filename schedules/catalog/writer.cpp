// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/catalog/writer.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

void batch_writer::weight_gradient() {
  add(weights_.front());
  weights_.pop_front();
}

void batch_writer::weight_gradient(int which) {
  const auto oldest = std::ranges::find_if(weights_, stage_filter(which));
  add(*oldest);
  weights_.erase(oldest);
}

bool batch_writer::owes_weight_gradients(int which) const {
  return std::ranges::any_of(weights_, stage_filter(which));
}

std::vector<action> batch_writer::batch() && {
  std::erase_if(actions_,
                [&](const action& a) { return a.microbatch >= dims_.microbatches; });
  for (const auto& [direction, stage] :
       hosted_by(where_, dims_, rank_of(where_, dims_, stages_[0])))
    actions_.push_back({op::update, direction, stage, dims_.microbatches - 1});
  return std::move(actions_);
}

} // namespace troupe
