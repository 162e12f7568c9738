// SPDX-License-Identifier: BSD-3-Clause
#include "actors/experts/expert_core.hpp"

#include "plan/stage_experts.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {

expert_core::expert_core(std::shared_ptr<const run_plan> plan, position where,
                         int expert, performer_port& port,
                         std::shared_ptr<expert_work> work)
  : plan_(std::move(plan)),
    where_(where),
    name_(name_of_expert(*plan_, expert, where)),
    expert_(expert),
    port_(&port),
    width_(width_of_rows(*plan_)),
    work_(std::move(work)),
    received_rows_(static_cast<std::size_t>(plan_->mesh[axis::expert])) {
  const auto of_stage = experts_of(*plan_, where.stage);
  in_stage_ = static_cast<int>(std::ranges::find(of_stage, expert) - of_stage.begin());
}

/// The stage, in one of the data replicas that this expert serves.
position expert_core::source(int number) const {
  auto result = where_;
  result.data =
    where_.data / plan_->mesh[axis::expert] * plan_->mesh[axis::expert] + number;
  return result;
}

void expert_core::receive(mail::meeting_message message) {
  auto& rows = std::get<mail::rows_to_expert>(message.body);
  auto& entry = received_rows_[static_cast<std::size_t>(rows.source)];
  if (entry)
    throw std::logic_error("got rows of " + to_string(rows.action, true) + " before "
                           + to_string(entry->action, true) + " was done");
  entry = rows;
  if (!has_all(rows))
    return;
  if (idle())
    answer();
  else
    port_->arrived(rows.action);
}

bool expert_core::has_all(const mail::rows_to_expert& last) {
  if (!std::ranges::all_of(received_rows_,
                           [](const auto& part) { return part.has_value(); }))
    return false;
  for (auto& part : received_rows_) {
    if (part->action != last.action)
      throw std::logic_error("got rows of " + to_string(part->action, true) + " and of "
                             + to_string(last.action, true));
    rows_.push_back(std::move(*part));
    part.reset();
  }
  return true;
}

/// True if no data replica sent any rows and there are no gradients to set to 0.
bool expert_core::idle() const {
  return std::ranges::all_of(rows_, [](const auto& part) {
    return part.rows == 0 && !(part.loan && part.loan->begins_sum);
  });
}

// The stage's action also counts the operations of the experts. So this work is a share
// of the stage's work.
void expert_core::run(const action& a) {
  auto samples = static_cast<double>(plan_->samples_of(where_.data, a.microbatch));
  if (const auto length = plan_->length_of(where_.data, a.microbatch);
      length > 0 && plan_->work)
    samples *=
      static_cast<double>(length) / static_cast<double>(plan_->work->whole.rows);
  work result{.kind = static_cast<int>(a.op),
              .stage = a.stage,
              .microbatch = a.microbatch,
              .operations =
                work_->operations_of_stage() * (a.op == op::backward ? 2 : 1) * samples,
              .size = plan_->part_of_largest(where_.data, a.microbatch)};
  auto& part = result.parts.emplace_back();
  part.share = work_->share_of(count_of(rows_), samples);
  part.run = [this] { work_->compute(rows_); };
  port_->compute(std::move(result), a);
}

void expert_core::ended(const mail::ended& e) {
  const auto lent =
    std::ranges::find_if(rows_, [](const auto& part) { return !!part.loan; });
  port_->done({.action = e.action,
               .start = e.start,
               .end = e.end,
               .off_processor_time = e.off_processor_time,
               .version = lent->loan->version,
               .part = true, // of the stage's action
               .expert = expert_});
  answer();
}

// The stage's borrowed rows are released before the answers are sent: the last answer
// may end the stage's action.
void expert_core::answer() {
  auto results = work_->results(rows_);
  std::vector<std::int64_t> bytes;
  for (const auto& part : rows_)
    bytes.push_back(part.action.op == op::weight_gradient
                      ? 0
                      : part.rows * width_ * std::int64_t{sizeof(float)});
  rows_.clear();
  for (std::size_t s = 0; s < results.size(); ++s) {
    const auto to = source(static_cast<int>(s));
    port_->send({{role::stage, to},
                 meeting_kind::experts,
                 mail::rows_from_expert{in_stage_, std::move(results[s])},
                 to == where_ ? std::nullopt : std::optional{traffic::experts},
                 bytes[s]});
  }
}

mail::waiting_for expert_core::explain() const {
  const auto received =
    std::ranges::find_if(received_rows_, [](const auto& p) { return !!p; });
  if (!rows_.empty() || received == received_rows_.end())
    return {name_, "", ""};
  const auto missing =
    std::ranges::find_if(received_rows_, [](const auto& p) { return !p; })
    - received_rows_.begin();
  return {name_, "the rows of " + to_string((*received)->action, true),
          plan_->name_of(source(static_cast<int>(missing)))};
}

} // namespace troupe
