// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/data_source.hpp"

#include "actors/mail/failure.hpp"
#include "actors/pipeline/tensor_headers.hpp"
#include "models/data/read_samples.hpp"
#include "plan/stage_pools.hpp"

#include <optional>
#include <vector>

namespace troupe {

data_pools::data_pools(const run_plan& plan, position first, memory_account& whole)
  : account_(&whole, plan.machine.memory_for_samples()),
    inputs("samples", pools_of(plan, first).input_slots, pools_of(plan, first).input,
           account_, plan.work->whole.element_of_input()),
    labels("labels", pools_of(plan, first).input_slots, pools_of(plan, first).labels,
           account_, element::int32) {
  // nop
}

namespace {

using self_pointer = data_source_actor::stateful_pointer<data_source_state>;

template <class Handle, class Message>
void send(self_pointer self, const Handle& to, Message&& message) {
  send_from(self, *self->state.shared.meter, to, std::forward<Message>(message));
}

/// Transposes values in place from (B, T), sample by sample, to (T, B), position by
/// position.
void order_by_position(std::int32_t* values, std::int64_t samples,
                       std::int64_t length) {
  const std::vector<std::int32_t> by_sample(values, values + samples * length);
  for (std::int64_t i = 0; i < samples; ++i)
    for (std::int64_t t = 0; t < length; ++t)
      values[t * samples + i] = by_sample[static_cast<std::size_t>(i * length + t)];
}

/// Reads a microbatch into free buffers of the pools. Sends the labels to the last
/// stage and the input to the first. \throws std::logic_error if a pool has no free
/// buffer
void read_and_send(self_pointer self, tensor_header header) {
  auto& state = self->state;
  const auto& plan = *state.shared.plan;
  const auto& work = *plan.work;
  const auto microbatch = plan.microbatch_of_all(state.where.data, header.microbatch);
  const auto length = plan.batches().length_of(microbatch);
  const auto input = state.pools->inputs.acquire(),
             answers = state.pools->labels.acquire();
  std::optional<occupied> now;
  if (state.reader.before_reading)
    state.reader.before_reading();
  if (state.reader.current_task != nullptr)
    now.emplace(*state.reader.current_task,
                task{.kind = reading, .microbatch = header.microbatch});
  read_samples(*work.data, work.whole, plan.batches().range_of(microbatch), length,
               {input.integers(), input.data(), answers.integers()});
  const auto labels_each = length > 0 ? length : work.whole.rows,
             values = length > 0 ? length : work.whole.layers.front()->input();
  if (plan.sequence_parallel)
    for (auto* const of_positions : {input.integers(), answers.integers()})
      order_by_position(of_positions, header.samples, values);
  now.reset();
  header.values = labels_each;
  header.stage = plan.dims.stages - 1;
  auto last = state.where;
  last.stage = header.stage;
  send(self, state.handles->stage(last), labels{header, answers});
  header.values = values;
  header.stage = 0;
  send(self, state.handles->stage(state.where), activation{header, input});
}

void send_next(self_pointer self) {
  auto& state = self->state;
  const auto& plan = *state.shared.plan;
  if (state.sent == microbatches_of_direction(plan.sch, plan.dims))
    return;
  const int microbatch =
    microbatch_of(plan.sch.where, plan.dims, state.where.direction, state.sent++);
  const auto header = header_of(plan, state.where, 0, microbatch, 0, 0);
  if (state.pools)
    read_and_send(self, header);
  else
    send(self, state.handles->stage(state.where), activation{header, {}});
}

} // namespace

data_source_actor::behavior_type data_source(self_pointer self, run_context shared,
                                             position where,
                                             std::shared_ptr<data_pools> pools,
                                             sample_reader reader) {
  report_failures(self);
  auto& state = self->state;
  state.name = shared.plan->source_of(where);
  state.shared = std::move(shared);
  state.where = where;
  state.pools = std::move(pools);
  state.reader = std::move(reader);
  auto& meter = *state.shared.meter;
  return {
    on_message(self, meter,
               [self](const mail::demand&) {
                 if (self->state.handles)
                   send_next(self);
                 else
                   ++self->state.pending_demands;
               }),
    on_message(self, meter,
               [self](const mail::explain&) {
                 send(self, self->state.handles->coordinator,
                      mail::waiting_for{
                        self->state.name, "demand",
                        self->state.shared.plan->name_of(self->state.where)});
               }),
    on_message(self, meter,
               [self](const mail::wiring& w) {
                 self->state.handles = w.handles;
                 for (; self->state.pending_demands > 0; --self->state.pending_demands)
                   send_next(self);
               }),
  };
}

} // namespace troupe
