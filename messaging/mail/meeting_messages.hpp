// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective_message.hpp"
#include "messaging/mail/experts.hpp"
#include "messaging/mail/performers.hpp"
#include "messaging/mail/traffic.hpp"
#include "messaging/mail/updates.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <variant>
#include <vector>

// Messages of performers for a meeting, with the kind of the meeting and the receiver.

namespace troupe {

/// The kinds of meetings (actors/meetings).
enum class meeting_kind : std::uint8_t {
  shards,  ///< Tensor shards of a stage sum, gather or scatter.
  layers,  ///< Data replicas gather a layer's parameters, or sum its gradients.
  experts, ///< Experts of a layer receive rows, and answer.
  /// All directions send gradients to one update, and receive the new version.
  directions,
  sums, ///< Data replicas sum the gradients of an update.
  /// After each data replica has made a share of a version, the replicas gather the
  /// version.
  gathers,
  tie,     ///< Both ends of a tied matrix add each other's gradients.
  norm,    ///< Optimizer shards compute the norm of gradients.
  servers, ///< Parameter servers update, and answer.
  user,    ///< Data replicas exchange gradients by the user's own code.
};

inline constexpr int meeting_kinds = 10;

namespace mail {

/// Device to performer: a sum, or a collective's GPU work, has ended that one of the
/// performer's meetings requested.
struct sum_over {
  int number; ///< Number that the meeting gave with the request.
  std::exception_ptr failure = {};

  /// Returns the number of the sum.
  /// \throws the failure, if there is one
  int checked_number() const {
    if (failure)
      std::rethrow_exception(failure);
    return number;
  }
};

/// A message of one performer to another for a meeting.
struct meeting_message {
  using content =
    std::variant<collective_message, rows_to_expert, rows_from_expert, bucket_ready,
                 update_request, updated, version_there, norm_part, clip_by, tied_part,
                 push, pulled, sum_over, user_message>;

  performer to;
  meeting_kind meeting;
  content body;
  /// The traffic class of the message's bytes on the way to another rank. Absent if the
  /// message stays on one rank, or if messages of its type never carry tensors. The
  /// message then takes no time, and its bytes are not counted.
  std::optional<traffic> kind = {};
  std::int64_t bytes = 0; ///< Bytes of the message's tensors.
};

} // namespace mail

using meeting_messages = std::vector<mail::meeting_message>;

} // namespace troupe
