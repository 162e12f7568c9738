// SPDX-License-Identifier: BSD-3-Clause
#include "actors/updates/optimizer_core.hpp"

#include "kernels/arrays.hpp"
#include "plan/costs.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"

#include <cmath>
#include <numeric>
#include <utility>

namespace troupe {

optimizer_core::optimizer_core(std::shared_ptr<const run_plan> plan, position where,
                               performer_port& port, optimizer_memory memory)
  : plan_(std::move(plan)),
    where_(where),
    port_(&port),
    memory_(std::move(memory)),
    steps_(steps_of(*plan_, where)),
    directions_(*plan_, where, [this](int bucket, const std::vector<buffer>& buffers) {
      return add_bucket(bucket, buffers);
    }) {
  if (steps_.sums)
    sum_.emplace(*plan_, where, exchange_step::sum, memory_.sums);
  if (steps_.gathers)
    gather_.emplace(*plan_, where, exchange_step::gather, memory_.gathers);
  if (steps_.has_user_exchange)
    user_exchange_.emplace(*plan_, where);
  if (steps_.tied)
    tie_.emplace(*plan_, where, memory_.ties);
  if (steps_.norm)
    norm_.emplace(*plan_, where);
  if (steps_.servers)
    servers_.emplace(*plan_, where);
  const auto request_sum = [&port](requested_sum s) { port.sum(std::move(s)); };
  if (plan_->machine.sums_take_time())
    list().yield_sums(request_sum);
  if (memory_.groups)
    list().exchange_by(memory_.groups, request_sum);
  for (int d = 0; d < directions_.count(); ++d)
    direction_runs_.emplace_back(
      *port_, list(), [this, d] { return directions_.request_of(d).measured; });
  if (!plan_->work)
    return;
  const auto shares = shares_of(*plan_, where);
  if (plan_->work->optimizer.clip > 0 || measures_gradient(*plan_, where))
    measured_ = parts_of(layers_of(*plan_, where), shares);
  gradients_ = held_of(*plan_, shared_out::gradients, where);
  parameters_ = held_of(*plan_, shared_out::parameters, where);
  const auto buckets = buckets_of(*plan_, where);
  for (std::size_t b = 0; b < buckets.size(); ++b)
    operations_ += update_operations(shares[b].held(buckets[b]));
}

meeting_list optimizer_core::list() {
  meeting_list result;
  result[meeting_kind::directions] = &directions_;
  if (sum_)
    result[meeting_kind::sums] = &*sum_;
  if (gather_)
    result[meeting_kind::gathers] = &*gather_;
  if (user_exchange_)
    result[meeting_kind::user] = &*user_exchange_;
  if (tie_)
    result[meeting_kind::tie] = &*tie_;
  if (norm_)
    result[meeting_kind::norm] = &*norm_;
  if (servers_)
    result[meeting_kind::servers] = &*servers_;
  return result;
}

void optimizer_core::receive(mail::meeting_message message) {
  const auto* request = std::get_if<mail::update_request>(&message.body);
  const auto granted =
    request != nullptr ? std::optional{request->measured.action} : std::nullopt;
  port_->send_all(list().meeting_of(message.meeting).receive(std::move(message)));
  if (granted)
    begin(*granted);
  for (auto& direction_run : direction_runs_)
    direction_run.poll();
}

/// Called when all directions have completed a bucket: starts the sum between data
/// replicas, of gradients that are added in the order of directions. Without such a
/// sum, directions are added when the update is made.
meeting_messages optimizer_core::add_bucket(int bucket,
                                            const std::vector<buffer>& of_directions) {
  if (!sum_)
    return {};
  const auto& sum = of_directions.front();
  for (std::size_t d = 1; d < of_directions.size() && memory_.state; ++d)
    arrays<float>::add(of_directions[d].data(),
                       gradients_[static_cast<std::size_t>(bucket)], sum.data());
  sum_->expect(bucket, memory_.state ? sum.data() : nullptr);
  return sum_->begin(bucket);
}

void optimizer_core::begin(const action& a) {
  const int direction = a.direction;
  if (gather_ && direction == 0)
    for (int b = 0; b < gather_->buckets(); ++b)
      gather_->expect(
        b, memory_.state
             ? directions_.request_of(0).to[static_cast<std::size_t>(b)].data()
             : nullptr);
  const bool computes = plan_->work || memory_.parameters;
  if (user_exchange_ && direction == 0)
    user_exchange_->expect(directions_.request_of(0).gradients);
  if (tie_ && direction == 0)
    tie_->expect(directions_.request_of(0).gradients);
  auto& direction_run = direction_runs_[direction_of(a)];
  direction_run.begin(a, {computes ? operations_ : 0},
                      update_pieces(steps_, direction, work_of(direction)));
  direction_run.resume();
}

update_work optimizer_core::work_of(int direction) {
  update_work result;
  result.add = [this] { add_directions(); };
  result.copy_tied = [this] {
    add_directions();
    tie_->copy(stream_of(0));
  };
  result.measure = [this] { measure(); };
  if (direction > 0 && plan_->work)
    result.apply = [this, direction] { copy(direction); };
  else if (direction == 0 && (plan_->work || memory_.parameters))
    result.apply = [this] { apply(); };
  return result;
}

/// Saves the previous version before anything is written to the next version's memory.
void optimizer_core::save_previous(int direction) {
  if (const auto work =
        std::exchange(directions_.request_of(direction).save_previous, {}))
    work();
}

// The sum over directions is in the buffers of direction 0, whose samples count for
// all. An exchange between replicas has already added the buffers.
void optimizer_core::add_directions() {
  if (std::exchange(added_, true))
    return;
  auto& sum = directions_.request_of(0);
  for (int d = 1; d < directions_.count(); ++d) {
    const auto& direction_part = directions_.request_of(d);
    sum.samples += direction_part.samples;
    for (std::size_t b = 0; b < gradients_.size() && !sum_; ++b)
      arrays<float>::add(direction_part.gradients[b].data(), gradients_[b],
                         sum.gradients[b].data(), stream_of(0));
  }
}

/// Adds directions, and the gradients of the other end of a tied matrix.
void optimizer_core::add_all() {
  add_directions();
  if (tie_)
    tie_->add(stream_of(0));
}

std::vector<double> optimizer_core::squares(bool shards_only) const {
  if (measured_.empty())
    return {};
  return squares_of(measured_, readable(directions_.request_of(0).gradients),
                    stream_of(0), shards_only,
                    extent_of(*plan_, shared_out::gradients));
}

/// True if an earlier tensor shard or data replica updates the same parameters, except
/// parameters that are divided. Only the first measures squares of such parameters.
bool optimizer_core::is_copy() const {
  return where_.tensor > 0
         || (where_.data % plan_->mesh[axis::expert] > 0
             && !shares_out(*plan_, shared_out::optimizer_state));
}

/// Keeps the shard's part of the update for the recorder.
/// \param squares sum over this shard's gradients, which no other shard measures
void optimizer_core::report_part(double squares) {
  if (!memory_.state || !measures_gradient(*plan_, where_))
    return;
  const auto samples = directions_.request_of(0).samples;
  part_ = {.where = where_,
           .version = 0, // the stage knows the version
           .samples = samples,
           .squares = squares,
           .rate = memory_.state->next_rate(samples)};
}

void optimizer_core::measure() {
  add_all();
  if (norm_) {
    auto parts = squares(is_copy());
    report_part(std::accumulate(parts.begin(), parts.end(), 0.0));
    norm_->expect({where_, directions_.request_of(0).samples, std::move(parts)});
  }
  if (servers_)
    servers_->expect([this] {
      const auto& sum = directions_.request_of(0);
      return mail::push{where_.data, sum.samples, norm_ ? norm_->factor() : 1,
                        sum.gradients, sum.to};
    });
  save_previous(0); // servers write the version next
}

/// The factor that clips the stage's gradients by the stage's own norm.
double optimizer_core::stage_clip_factor() {
  const auto parts = squares(false);
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  report_part(sum);
  const double norm = std::sqrt(sum);
  return clip_factor(plan_->work->optimizer.clip,
                     norm / static_cast<double>(directions_.request_of(0).samples));
}

void optimizer_core::apply() {
  add_all();
  save_previous(0);
  auto& sum = directions_.request_of(0);
  const bool clips_alone = plan_->work && plan_->work->optimizer.clip > 0;
  const double factor = norm_ ? norm_->factor() : clips_alone ? stage_clip_factor() : 1;
  if (!norm_ && !clips_alone && memory_.state && measures_gradient(*plan_, where_))
    report_part(total_square_of(measured_, readable(sum.gradients), stream_of(0),
                                is_copy(), extent_of(*plan_, shared_out::gradients)));
  if (memory_.parameters) {
    if (memory_.state)
      stream_of(0).wait(); // inputs of the update and of the saved copy are read here
    memory_.parameters->update(where_.data, sum.samples, factor, sum.gradients,
                               memory_.state.get(),
                               memory_.state ? &stream_of(0) : nullptr);
    return memory_.parameters->read(where_.data, sum.to);
  }
  memory_.state->update(sum.samples, factor, readable(sum.gradients),
                        readable(sum.from), writable(sum.to), stream_of(0));
}

void optimizer_core::copy(int direction) {
  save_previous(direction);
  const auto &first = directions_.request_of(0),
             &part = directions_.request_of(direction);
  for (std::size_t b = 0; b < parameters_.size(); ++b)
    arrays<float>::copy(first.to[b].data(), parameters_[b], part.to[b].data(),
                        stream_of(direction));
}

void optimizer_core::ended(const mail::ended& e) {
  const auto d = direction_of(e.action);
  if (!direction_runs_[d].ended(e))
    return;
  if (d == 0)
    port_->send_all(directions_.begin(direction_meeting::version));
  if (++ended_ == directions_.count()) {
    ended_ = 0;
    added_ = false;
    directions_.next_update();
    if (sum_)
      sum_->next_update();
    if (gather_)
      gather_->next_update();
    if (user_exchange_)
      user_exchange_->next_update();
    if (tie_)
      tie_->next_update();
    if (norm_)
      norm_->next_update();
  }
  auto stage = where_;
  stage.direction = e.action.direction;
  port_->send({{role::stage, stage},
               meeting_kind::directions,
               mail::updated{e.start, e.end, e.off_processor_time,
                             d == 0 ? std::exchange(part_, {}) : std::nullopt}});
}

mail::waiting_for optimizer_core::explain() const {
  const auto name = plan_->optimizer_of(where_);
  for (const auto& direction_run : direction_runs_)
    if (const auto waits = direction_run.explain(name))
      return *waits;
  const auto missing = directions_.waits_for();
  return {name, missing ? missing->input : "", ""};
}

} // namespace troupe
