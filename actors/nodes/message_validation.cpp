// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/message_validation.hpp"

#include "actors/checkpoints/training_state.hpp"
#include "actors/meetings/layer_meeting.hpp"
#include "actors/meetings/tie_meeting.hpp"
#include "actors/nodes/message_sizes.hpp"
#include "models/optimizer.hpp"
#include "plan/expert_sizes.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_experts.hpp"
#include "plan/stage_layers.hpp"
#include "plan/stage_pools.hpp"

#include <algorithm>

namespace troupe {

namespace {

std::string unless(bool is_valid, const char* error) {
  return is_valid ? "" : std::string{"it sent "} + error;
}

bool is_stage(const run_plan& plan, position where) {
  return exists(plan, {.actor = wire::address::kind::stage, .where = where});
}

bool is_rank(const run_plan& plan, int rank) {
  return rank >= 0 && rank < plan.ranks();
}

/// True if an action belongs to the run.
bool is_action(const run_plan& plan, const action& a) {
  return a.direction >= 0 && a.direction < plan.directions() && a.stage >= 0
         && a.stage < plan.dims.stages && a.microbatch >= 0
         && a.microbatch < plan.dims.total();
}

/// True if the receiver has such a meeting, and this message may come in that meeting.
bool meets(const run_plan& plan, const wire::address& to,
           const mail::meeting_message& m) {
  using address = wire::address::kind;
  const bool stage = to.actor == address::stage,
             shard = to.actor == address::optimizer_shard;
  const auto* const part = std::get_if<collective_message>(&m.body);
  switch (m.meeting) {
  case meeting_kind::shards:
    return stage && part && plan.mesh[axis::tensor] > 1;
  case meeting_kind::layers:
    return stage && part && shares_out(plan, shared_out::gradients);
  case meeting_kind::experts:
    return stage ? std::holds_alternative<mail::rows_from_expert>(m.body)
                     && !experts_of(plan, to.where.stage).empty()
                 : to.actor == address::expert
                     && std::holds_alternative<mail::rows_to_expert>(m.body);
  case meeting_kind::sums:
    return shard && part && sums_at_update(plan);
  case meeting_kind::gathers:
    return shard && part && gathers_at_update(plan);
  case meeting_kind::tie:
    return shard && std::holds_alternative<mail::tied_part>(m.body)
           && has_tied_end(plan, to.where);
  case meeting_kind::norm:
    return shard && plan.work->optimizer.clip > 0
           && (std::holds_alternative<mail::norm_part>(m.body)
               || std::holds_alternative<mail::clip_by>(m.body));
  default: // all others stay within a rank
    return false;
  }
}

/// The encoding of a collective's message, whatever the message says.
const codec_entry& coding_of(const run_plan& plan, meeting_kind meeting,
                             const collective_message& part) {
  const bool sums_gradients = meeting == meeting_kind::sums
                              || (meeting == meeting_kind::layers
                                  && layer_meeting::sums_gradients(part.instance));
  return sums_gradients && !part.is_call() ? *plan.exchange->compression : fp32_codec();
}

} // namespace

message_validation::message_validation(std::shared_ptr<const run_plan> plan)
  : plan_(std::move(plan)) {
  const int last = plan_->dims.stages - 1;
  std::int64_t largest = 0;
  for (const auto& l : plan_->work->whole.layers)
    largest = std::max(largest, l->bucket());
  for (int d = 0; d < plan_->directions(); ++d)
    for (int s = 0; s <= last; ++s)
      for (int t = 0; t < plan_->mesh[axis::tensor]; ++t) {
        const position where{0, d, s, t}, below{0, d, s - 1, t};
        auto& facts = stages_.emplace_back();
        const auto sizes = pools_of(*plan_, where);
        if (s > 0)
          facts.capacity_below = pools_of(*plan_, below).boundary;
        if (s < last)
          facts.capacity_above = sizes.boundary;
        if (const auto experts = experts_of(*plan_, s); !experts.empty())
          facts.most_rows = sizes_of_expert(*plan_, experts.front()).payload;
        facts.most_array = std::max({largest, sizes.to_shards.values, sizes.sums.values,
                                     sizes.gathers.values, sizes.ties.values});
      }
}

void message_validation::set_groups(const known_groups& groups) {
  const auto candidates = exchanging_groups(*plan_);
  for (const auto& [number, id] : groups.ids)
    groups_.push_back(candidates[static_cast<std::size_t>(number)]);
  knows_groups_ = true;
}

/// True if a message comes from another member of the receiver's group.
bool message_validation::is_call(const mail::meeting_message& m,
                                 const collective_message& call) const {
  return knows_groups_ && std::ranges::any_of(groups_, [&](const auto& group) {
           const auto is_member = [&](int n) {
             return n >= 0 && n < std::ssize(group.members);
           };
           return group.kind == m.meeting && is_member(call.from) && is_member(call.to)
                  && call.from != call.to
                  && group.members[static_cast<std::size_t>(call.to)] == m.to.where;
         });
}

/// True if GPUs move the tensors from one stage to another.
bool message_validation::has_channel(position from, position to) const {
  return knows_groups_ && std::ranges::any_of(groups_, [&](const auto& group) {
           return group.is_channel() && group.members.front() == from
                  && group.members.back() == to;
         });
}

struct message_validation::validator {
  const message_validation& rules;
  const run_plan& plan;
  const shard_sizes& sizes; // of the stage that is the receiver or hosts the receiver
  const wire::address& to;

  /// \param step stages from the sender to this stage; 0 if the sender is a data source
  /// \param values function from a microbatch's length to values per sample
  template <class Values>
  std::string header(const tensor_header& h, int step, bool comes,
                     const Values& values) const {
    auto from = to.where;
    from.stage -= step;
    return unless(
      comes && h.is_call() == (step != 0 && rules.has_channel(from, to.where))
        && to.actor == wire::address::kind::stage && h.stage == to.where.stage
        && h.microbatch >= 0 && h.microbatch < plan.dims.total()
        && h.pipeline == plan.replica_at(to.where)
        && h.samples == plan.samples_of(to.where.data, h.microbatch)
        && h.values == values(plan.length_of(to.where.data, h.microbatch)),
      "a tensor whose header does not fit the run");
  }

  std::string operator()(const activation& m) const {
    return header(m.header, 1, sizes.capacity_below > 0, [&](std::int64_t length) {
      return values_below(plan, to.where, length);
    });
  }
  std::string operator()(const gradient& m) const {
    auto above = to.where;
    ++above.stage;
    return header(m.header, -1, sizes.capacity_above > 0, [&](std::int64_t length) {
      return values_below(plan, above, length);
    });
  }
  std::string operator()(const labels& m) const {
    return header(
      m.header, 0, to.where.stage == plan.dims.stages - 1,
      [&](std::int64_t length) { return length > 0 ? length : plan.work->whole.rows; });
  }

  std::string operator()(const mail::meeting_message& m) const {
    constexpr std::int64_t value = sizeof(float);
    const bool rows_travel = m.meeting == meeting_kind::experts;
    const auto most = value * (rows_travel ? sizes.most_rows : sizes.most_array);
    const auto* const part = std::get_if<collective_message>(&m.body);
    const bool calls = part != nullptr && part->is_call();
    const bool tensors = !std::holds_alternative<mail::norm_part>(m.body)
                         && !std::holds_alternative<mail::clip_by>(m.body);
    // A call stands for all data in one direction: up to as many messages as there are
    // members, twice.
    const auto times = calls ? 2 * plan.ranks() : 1;
    bool is_valid = m.bytes >= 0 && m.bytes / times <= most
                    && is_stage(plan, m.to.where) && m.kind.has_value() == tensors
                    && meets(plan, to, m);
    if (part != nullptr)
      is_valid = is_valid && (calls ? rules.is_call(m, *part) : part->values > 0)
                 && part->bytes == coding_of(plan, m.meeting, *part).bytes(part->values)
                 && part->bytes == m.bytes;
    else if (const auto* tied = std::get_if<mail::tied_part>(&m.body))
      is_valid = is_valid && is_stage(plan, tied->sender) && tied->first >= 0
                 && tied->values > 0 && tied->values * value == m.bytes
                 && tied->first * value <= most;
    else if (const auto* rows = std::get_if<mail::rows_to_expert>(&m.body))
      is_valid = is_valid && is_action(plan, rows->action) && rows->source >= 0
                 && rows->source < plan.mesh[axis::expert] && rows->rows >= 0
                 && rows->rows <= most / value
                 && m.bytes
                      == (rows->action.op == op::weight_gradient
                            ? 0
                            : rows->rows * width_of_rows(plan) * value);
    else if (const auto* answer = std::get_if<mail::rows_from_expert>(&m.body))
      is_valid = is_valid && answer->expert >= 0
                 && answer->expert < std::ssize(experts_of(plan, to.where.stage));
    else if (const auto* norm = std::get_if<mail::norm_part>(&m.body))
      is_valid = is_valid && is_stage(plan, norm->sender);
    return unless(is_valid, "a meeting message that does not fit the run");
  }

  std::string operator()(const mail::samples& m) const {
    return unless(
      is_rank(plan, m.rank)
        && std::ranges::all_of(
          m.actions, [&](const auto& s) { return is_action(plan, s.action); }),
      "actions that this run does not have");
  }
  std::string operator()(const mail::sums& m) const {
    return unless(is_rank(plan, m.rank)
                    && std::ranges::all_of(m.totals.stages,
                                           [&](const auto& s) {
                                             return s.stage >= 0
                                                    && s.stage < plan.dims.stages;
                                           }),
                  "sums with an invalid rank or stage");
  }
  std::string operator()(const mail::microbatch_loss& m) const {
    return unless(m.microbatch >= 0
                    && m.microbatch
                         < std::int64_t{plan.dims.total()} * plan.mesh[axis::data]
                    && m.samples > 0 && m.samples <= plan.work->batch,
                  "a loss with an invalid microbatch or number of samples");
  }
  std::string operator()(const mail::expert_load& m) const {
    return unless(
      m.of_layer < plan.work->whole.layers.size() && m.microbatch >= 0
        && m.microbatch < std::int64_t{plan.dims.total()} * plan.mesh[axis::data]
        && std::ssize(m.rows) <= plan.work->experts.count,
      "loads of experts with an invalid layer, microbatch or number of experts");
  }
  std::string operator()(const mail::snapshot& m) const {
    return unless(is_stage(plan, m.where)
                    && m.parameters.size()
                         == held_of(plan, shared_out::parameters, m.where).size(),
                  "parameters that do not fit a stage of the run");
  }
  std::string operator()(const mail::version_made& m) const {
    const bool is_valid =
      is_stage(plan, m.where) && m.version >= 1
      && m.version <= std::int64_t{plan.dims.total()} * plan.mesh[axis::data];
    const auto buckets = is_valid ? layer_buckets(plan, m.where).size() : 0;
    return unless(is_valid && m.parameters.size() == buckets
                    && m.gradients.size() == buckets,
                  "a weight version that does not fit a stage of the run");
  }
  std::string operator()(const mail::collected& m) const {
    if (!is_stage(plan, m.where))
      return unless(false, "parameters of a stage that the run does not have");
    const auto buckets = held_of(plan, shared_out::parameters, m.where).size();
    return unless(m.parameters.size() == buckets && m.gradients.size() == buckets,
                  "parameters that do not fit a stage of the run");
  }
  std::string operator()(const mail::copied& m) const {
    return unless(is_stage(plan, m.where),
                  "a report of a stage that the run does not have");
  }
  std::string operator()(const mail::saved& m) const {
    if (!is_stage(plan, m.where))
      return unless(false, "copies of a stage that the run does not have");
    return copies(m, saved_copies(plan, m.where));
  }
  std::string operator()(const mail::kept_state& m) const {
    if (!is_stage(plan, m.copies.where))
      return unless(false, "copies of a stage that the run does not have");
    if (!plan.copies.keep_steps)
      return unless(false, "copies of kept steps in a run without --keep-steps");
    if (m.copies.versions.empty() && m.copies.state.empty())
      return {}; // the stage has kept no copies
    return copies(m.copies, kept_copies(plan, m.copies.where));
  }
  std::string copies(const mail::saved& m, const copies_bound& bound) const {
    const auto& [versions, state] = bound;
    bool is_valid = std::ssize(m.state) == state.buffers
                    && m.versions.size() == m.ages.size()
                    && std::ssize(m.versions) <= versions.buffers
                    && m.ages.empty() == (versions.buffers == 0);
    for (std::size_t i = 0; i < m.ages.size(); ++i)
      is_valid = is_valid && (i == 0 ? m.ages[i] == 0 : m.ages[i] > m.ages[i - 1])
                 && m.ages[i] <= most_older(plan);
    return unless(is_valid, "copies whose number or ages do not fit their stage");
  }

  std::string rank(int number) const {
    return unless(is_rank(plan, number),
                  "a report of a rank that the run does not have");
  }
  std::string operator()(const mail::finished& m) const { return rank(m.rank); }
  std::string operator()(const mail::held& m) const { return rank(m.rank); }
  std::string operator()(const mail::started& m) const { return rank(m.rank); }
  std::string operator()(const mail::at_checkpoint& m) const { return rank(m.rank); }

  template <class Other> // messages that name nothing of the plan
  std::string operator()(const Other&) const {
    return {};
  }
};

std::string
message_validation::validation_error(const wire::addressed_message& message) const {
  if (!exists(*plan_, message.to))
    return "it sent a message to an actor that this run does not have";
  auto error = std::visit(
    validator{*this, *plan_, sizes_at(message.to.where), message.to}, message.message);
  if (!error.empty())
    return error;
  return unless(tensor_bytes(*plan_, message) == message.tensors,
                "a tensor of another size than the run's");
}

std::int64_t message_validation::capacity_of(const wire::addressed_message& message,
                                             std::int64_t bytes) const {
  const auto& sizes = sizes_at(message.to.where);
  if (std::holds_alternative<activation>(message.message))
    return sizes.capacity_below;
  if (std::holds_alternative<gradient>(message.message))
    return sizes.capacity_above;
  const auto* const meeting_message =
    std::get_if<mail::meeting_message>(&message.message);
  if (meeting_message != nullptr && meeting_message->meeting == meeting_kind::experts)
    return sizes.most_rows;
  return bytes / std::int64_t{sizeof(float)};
}

} // namespace troupe
