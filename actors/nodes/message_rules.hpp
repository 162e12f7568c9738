// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/training_state.hpp"
#include "actors/nodes/rule_context.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_layers.hpp"
#include "plan/stage_pools.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>

// Rules for messages of other processes, except meeting messages (meeting_rules.hpp).

namespace troupe {

/// Rules for tensor messages between stages.
struct tensor_rules {
  static std::string error(const rule_context& context, const activation& m) {
    return header_error(context, m.header, 1, context.sizes.capacity_below > 0,
                        [&context](std::int64_t length) {
                          return values_below(context.plan, context.to.where, length);
                        });
  }
  static std::int64_t capacity(const rule_context& context, const activation&,
                               std::int64_t) {
    return context.sizes.capacity_below;
  }

  static std::string error(const rule_context& context, const gradient& m) {
    auto above = context.to.where;
    ++above.stage;
    return header_error(context, m.header, -1, context.sizes.capacity_above > 0,
                        [&context, above](std::int64_t length) {
                          return values_below(context.plan, above, length);
                        });
  }
  static std::int64_t capacity(const rule_context& context, const gradient&,
                               std::int64_t) {
    return context.sizes.capacity_above;
  }

  static std::string error(const rule_context& context, const labels& m) {
    return header_error(context, m.header, 0,
                        context.to.where.stage == context.plan.dims.stages - 1,
                        [&context](std::int64_t length) {
                          return length > 0 ? length : context.plan.work->whole.rows;
                        });
  }

  template <class Message>
  requires is_one_of<Message, activation, gradient, labels>
  static byte_counts sizes(const run_plan&, const Message& m) {
    return {m.header.is_call() ? 0 : m.header.samples * m.header.values * value_bytes};
  }

private:
  /// \param step stages from the sender to this stage; 0 if the sender is a data source
  /// \param values function from a microbatch's length to values per sample
  template <class Values>
  static std::string header_error(const rule_context& context, const tensor_header& h,
                                  int step, bool comes, const Values& values) {
    auto from = context.to.where;
    from.stage -= step;
    return unless(
      comes && h.is_call() == (step != 0 && has_channel(context, from))
        && context.to.actor == wire::address::kind::stage
        && h.stage == context.to.where.stage && h.microbatch >= 0
        && h.microbatch < context.plan.dims.total()
        && h.pipeline == context.plan.replica_at(context.to.where)
        && h.samples == context.plan.samples_of(context.to.where.data, h.microbatch)
        && h.values
             == values(context.plan.length_of(context.to.where.data, h.microbatch)),
      "a tensor whose header does not fit the run");
  }

  /// True if GPUs move the tensors from a stage to the receiver.
  static bool has_channel(const rule_context& context, position from) {
    return std::ranges::any_of(context.groups, [&](const auto& group) {
      return group.is_channel() && group.members.front() == from
             && group.members.back() == context.to.where;
    });
  }
};

/// Rules for messages to the recorder and between the coordinator and other actors.
struct report_rules {
  static std::string error(const rule_context& context, const mail::samples& m) {
    return unless(is_rank(context.plan, m.rank)
                    && std::ranges::all_of(m.actions,
                                           [&](const auto& s) {
                                             return is_action(context.plan, s.action)
                                                    && (s.off_processor_time == 0
                                                        || s.off_processor_time
                                                             <= s.end - s.start);
                                           }),
                  "actions or times that this run does not have");
  }

  static std::string error(const rule_context& context, const mail::sums& m) {
    return unless(is_rank(context.plan, m.rank)
                    && std::ranges::all_of(m.totals.stages,
                                           [&](const auto& s) {
                                             return s.stage >= 0
                                                    && s.stage
                                                         < context.plan.dims.stages;
                                           }),
                  "sums with an invalid rank or stage");
  }

  static std::string error(const rule_context& context,
                           const mail::microbatch_loss& m) {
    return unless(m.microbatch >= 0
                    && m.microbatch < std::int64_t{context.plan.dims.total()}
                                        * context.plan.mesh[axis::data]
                    && m.samples > 0 && m.samples <= context.plan.work->batch,
                  "a loss with an invalid microbatch or number of samples");
  }

  static std::string error(const rule_context& context, const mail::expert_load& m) {
    return unless(
      m.of_layer < context.plan.work->whole.layers.size() && m.microbatch >= 0
        && m.microbatch
             < std::int64_t{context.plan.dims.total()} * context.plan.mesh[axis::data]
        && std::ssize(m.rows) <= context.plan.work->experts.count,
      "loads of experts with an invalid layer, microbatch or number of experts");
  }

  static std::string error(const rule_context& context, const mail::update_part& m) {
    return unless(measures_gradient(context.plan, m.where) && m.version >= 1
                    && m.version <= context.plan.dims.total() && m.samples > 0,
                  "a part of an update that does not fit a stage of the run");
  }

  static std::string error(const rule_context& context, const mail::version_made& m) {
    const bool is_valid = is_stage(context.plan, m.where) && m.version >= 1
                          && m.version <= std::int64_t{context.plan.dims.total()}
                                            * context.plan.mesh[axis::data];
    const auto buckets = is_valid ? layer_buckets(context.plan, m.where).size() : 0;
    return unless(is_valid && m.parameters.size() == buckets
                    && m.gradients.size() == buckets,
                  "a weight version that does not fit a stage of the run");
  }
  static byte_counts sizes(const run_plan& plan, const mail::version_made& m) {
    return sizes_of_parts(plan, m.where,
                          {shared_out::parameters, shared_out::gradients});
  }

  static std::string error(const rule_context& context, const mail::snapshot& m) {
    return unless(
      is_stage(context.plan, m.where)
        && m.parameters.size()
             == held_of(context.plan, shared_out::parameters, m.where).size(),
      "parameters that do not fit a stage of the run");
  }
  static byte_counts sizes(const run_plan& plan, const mail::snapshot& m) {
    return sizes_of_parts(plan, m.where, {shared_out::parameters});
  }

  static std::string error(const rule_context& context, const mail::collected& m) {
    if (!is_stage(context.plan, m.where))
      return unless(false, "parameters of a stage that the run does not have");
    const auto buckets = held_of(context.plan, shared_out::parameters, m.where).size();
    return unless(m.parameters.size() == buckets && m.gradients.size() == buckets,
                  "parameters that do not fit a stage of the run");
  }
  static byte_counts sizes(const run_plan& plan, const mail::collected& m) {
    if (m.gradients.empty())
      return sizes_of_parts(plan, m.where, {shared_out::parameters});
    return sizes_of_parts(plan, m.where,
                          {shared_out::parameters, shared_out::gradients});
  }

  static std::string error(const rule_context& context, const mail::copied& m) {
    return unless(is_stage(context.plan, m.where),
                  "a report of a stage that the run does not have");
  }

  static std::string error(const rule_context& context, const mail::saved& m) {
    if (!is_stage(context.plan, m.where))
      return unless(false, "copies of a stage that the run does not have");
    return copies_error(context, m, saved_copies(context.plan, m.where));
  }
  static byte_counts sizes(const run_plan& plan, const mail::saved& m) {
    return copies_sizes(m, saved_copies(plan, m.where));
  }

  static std::string error(const rule_context& context, const mail::kept_state& m) {
    if (!is_stage(context.plan, m.copies.where))
      return unless(false, "copies of a stage that the run does not have");
    if (!context.plan.copies.keep_steps)
      return unless(false, "copies of kept steps in a run without --keep-steps");
    if (m.copies.versions.empty() && m.copies.state.empty())
      return {}; // the stage has kept no copies
    return copies_error(context, m.copies, kept_copies(context.plan, m.copies.where));
  }
  static byte_counts sizes(const run_plan& plan, const mail::kept_state& m) {
    return copies_sizes(m.copies, kept_copies(plan, m.copies.where));
  }

  /// The tensor's own size, for messages without another capacity.
  template <class Message>
  static std::int64_t capacity(const rule_context&, const Message&,
                               std::int64_t bytes) {
    return bytes / value_bytes;
  }

  template <class Message>
  requires is_one_of<Message, mail::finished, mail::held, mail::started,
                     mail::at_checkpoint>
  static std::string error(const rule_context& context, const Message& m) {
    return unless(is_rank(context.plan, m.rank),
                  "a report of a rank that the run does not have");
  }

  /// Messages whose numbers are valid in any plan.
  template <class Message>
  requires is_one_of<Message, mail::explain, mail::hold, mail::resume,
                     mail::resume_from_checkpoint, mail::stop, mail::stop_after,
                     mail::collect, mail::save, mail::fetch_kept_state,
                     mail::waiting_for, mail::failed>
  static std::string error(const rule_context&, const Message&) { return {}; }

private:
  static std::string copies_error(const rule_context& context, const mail::saved& m,
                                  const copies_bound& bound) {
    const auto& [versions, state] = bound;
    bool is_valid = std::ssize(m.state) == state.buffers
                    && m.versions.size() == m.ages.size()
                    && std::ssize(m.versions) <= versions.buffers
                    && m.ages.empty() == (versions.buffers == 0);
    for (std::size_t i = 0; i < m.ages.size(); ++i)
      is_valid = is_valid && (i == 0 ? m.ages[i] == 0 : m.ages[i] > m.ages[i - 1])
                 && m.ages[i] <= most_older(context.plan);
    return unless(is_valid, "copies whose number or ages do not fit their stage");
  }

  static byte_counts copies_sizes(const mail::saved& copies,
                                  const copies_bound& bound) {
    byte_counts result(copies.versions.size(), bound.versions.values * value_bytes);
    result.resize(result.size() + copies.state.size(),
                  bound.state.values * value_bytes);
    return result;
  }

  static byte_counts sizes_of_parts(const run_plan& plan, position where,
                                    std::initializer_list<shared_out> parts) {
    byte_counts result;
    for (const auto part : parts)
      for (const auto values : held_of(plan, part, where))
        result.push_back(values * value_bytes);
    return result;
  }
};

} // namespace troupe
