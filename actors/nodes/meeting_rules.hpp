// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/layer_meeting.hpp"
#include "actors/meetings/tie_meeting.hpp"
#include "actors/nodes/rule_context.hpp"
#include "messaging/codecs/codec.hpp"
#include "models/optimizer.hpp"
#include "plan/expert_sizes.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_experts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

// Rules for meeting messages of other processes.

namespace troupe {

/// Rules for meeting messages (rule_context.hpp). For each content that leaves a rank,
/// `fits` says whether the receiver has such a meeting, and the content is valid.
struct meeting_rules {
  static bool fits(const rule_context& context, const mail::meeting_message& m,
                   const collective_message& part) {
    return has_collective(context, m.meeting)
           && (part.is_call() ? is_call(context, m, part) : part.values > 0)
           && part.bytes == coding_of(context.plan, m.meeting, part).bytes(part.values)
           && part.bytes == m.bytes;
  }

  static bool fits(const rule_context& context, const mail::meeting_message& m,
                   const mail::rows_to_expert& part) {
    const auto width =
      part.action.op == op::weight_gradient ? 0 : width_of_rows(context.plan);
    return m.meeting == meeting_kind::experts && context.to.actor == address::expert
           && is_action(context.plan, part.action) && part.source >= 0
           && part.source < context.plan.mesh[axis::expert] && part.rows >= 0
           && part.rows <= context.sizes.most_rows
           && m.bytes == part.rows * width * value_bytes;
  }

  static bool fits(const rule_context& context, const mail::meeting_message& m,
                   const mail::rows_from_expert& part) {
    return m.meeting == meeting_kind::experts && context.to.actor == address::stage
           && part.expert >= 0
           && part.expert
                < std::ssize(experts_of(context.plan, context.to.where.stage));
  }

  static bool fits(const rule_context& context, const mail::meeting_message& m,
                   const mail::norm_part& part) {
    return has_norm(context, m) && is_stage(context.plan, part.sender);
  }

  static bool fits(const rule_context& context, const mail::meeting_message& m,
                   const mail::clip_by&) {
    return has_norm(context, m);
  }

  static bool fits(const rule_context& context, const mail::meeting_message& m,
                   const mail::tied_part& part) {
    return m.meeting == meeting_kind::tie
           && context.to.actor == address::optimizer_shard
           && has_tied_end(context.plan, context.to.where)
           && is_stage(context.plan, part.sender) && part.first >= 0 && part.values > 0
           && part.values * value_bytes == m.bytes
           && part.first <= context.sizes.most_array;
  }

  static std::string error(const rule_context& context,
                           const mail::meeting_message& m) {
    const bool rows_travel = m.meeting == meeting_kind::experts;
    const auto most = rows_travel ? context.sizes.most_rows : context.sizes.most_array;
    // A call stands for all data in one direction: up to as many messages as there are
    // members, twice.
    const auto times = calls(m) ? 2 * context.plan.ranks() : 1;
    const auto content_fits = [&](const auto& content) {
      constexpr bool has_tensor = requires {
        content.payload;
      };
      if constexpr (requires { fits(context, m, content); })
        return m.kind.has_value() == has_tensor && fits(context, m, content);
      else
        return false; // the content stays within a rank
    };
    return unless(m.bytes >= 0 && m.bytes / times <= most * value_bytes
                    && is_stage(context.plan, m.to.where)
                    && std::visit(content_fits, m.body),
                  "a meeting message that does not fit the run");
  }
  static byte_counts sizes(const run_plan&, const mail::meeting_message& m) {
    const auto sizes_of = [&m](const auto& content) -> byte_counts {
      if constexpr (requires { content.payload; })
        return {calls(m) ? 0 : m.bytes};
      else
        return {};
    };
    return std::visit(sizes_of, m.body);
  }
  static std::int64_t capacity(const rule_context& context,
                               const mail::meeting_message& m, std::int64_t bytes) {
    return m.meeting == meeting_kind::experts ? context.sizes.most_rows
                                              : bytes / value_bytes;
  }

private:
  using address = wire::address::kind;

  static bool calls(const mail::meeting_message& m) {
    const auto* const part = std::get_if<collective_message>(&m.body);
    return part != nullptr && part->is_call();
  }

  /// True if the receiver has such a meeting, with a collective.
  static bool has_collective(const rule_context& context, meeting_kind meeting) {
    const auto& plan = context.plan;
    const bool stage = context.to.actor == address::stage,
               shard = context.to.actor == address::optimizer_shard;
    switch (meeting) {
    case meeting_kind::shards:
      return stage && plan.mesh[axis::tensor] > 1;
    case meeting_kind::layers:
      return stage && shares_out(plan, shared_out::gradients);
    case meeting_kind::sums:
      return shard && sums_at_update(plan);
    case meeting_kind::gathers:
      return shard && gathers_at_update(plan);
    default:
      return false;
    }
  }

  static bool has_norm(const rule_context& context, const mail::meeting_message& m) {
    return m.meeting == meeting_kind::norm
           && context.to.actor == address::optimizer_shard
           && context.plan.work->optimizer.clip > 0;
  }

  /// True if a message comes from another member of the receiver's group.
  static bool is_call(const rule_context& context, const mail::meeting_message& m,
                      const collective_message& call) {
    return std::ranges::any_of(context.groups, [&](const auto& group) {
      const auto is_member = [&](int n) {
        return n >= 0 && n < std::ssize(group.members);
      };
      return group.kind == m.meeting && is_member(call.from) && is_member(call.to)
             && call.from != call.to
             && group.members[static_cast<std::size_t>(call.to)] == m.to.where;
    });
  }

  /// The encoding of a collective's message, whatever the message says.
  static const codec_entry& coding_of(const run_plan& plan, meeting_kind meeting,
                                      const collective_message& part) {
    const bool sums_gradients = meeting == meeting_kind::sums
                                || (meeting == meeting_kind::layers
                                    && layer_meeting::sums_gradients(part.instance));
    return sums_gradients && !part.is_call() ? *plan.exchange->compression
                                             : fp32_codec();
  }
};

} // namespace troupe
