// SPDX-License-Identifier: BSD-3-Clause
#include "actors/inference/inference_stage_core.hpp"

#include <utility>

namespace troupe {

std::string name_of_inference(int stage, int stages) {
  return stage < 0 || stage == stages ? "client" : "stage " + std::to_string(stage);
}

inference_stage_core::inference_stage_core(int stage, int stages,
                                           std::shared_ptr<inference_work> work)
  : stage_(stage),
    stages_(stages),
    name_(name_of_inference(stage, stages)),
    work_(std::move(work)) {
  // nop
}

std::optional<work> inference_stage_core::begin() {
  if (now_ || waiting_.empty() || capacity_above_ == 0)
    return {};
  --capacity_above_;
  now_ = std::make_shared<forward_under_way>();
  now_->in = std::move(waiting_.front());
  waiting_.pop_front();
  now_->out = now_->in;
  now_->out.values = work_->output_buffer();
  return work{.stage = stage_,
              .microbatch = static_cast<int>(now_->in.number),
              .operations = work_->operations(now_->in),
              .run = [work = work_, now = now_] { work->forward(now->in, now->out); }};
}

portion inference_stage_core::end() {
  const auto ended = std::exchange(now_, nullptr);
  ended->in = {};
  return std::exchange(ended->out, {});
}

mail::waiting_for inference_stage_core::explain() const {
  if (now_)
    return {name_, "its device", ""};
  if (waiting_.empty())
    return {name_, "a portion", name_of_inference(stage_ - 1, stages_)};
  return {name_, "room for a portion", name_of_inference(stage_ + 1, stages_)};
}

} // namespace troupe
