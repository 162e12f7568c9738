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

namespace troupe {

/// What performers meet others for (actors/meetings).
enum class meeting_kind : std::uint8_t {
  shards,     ///< Tensor shards of a stage sum, gather or scatter.
  layers,     ///< Data replicas gather a layer's parameters, or sum its gradients.
  experts,    ///< Experts of a layer take rows, and answer.
  directions, ///< Directions give their gradients to one update, and get its version.
  sums,       ///< Data replicas sum the gradients of an update.
  gathers,    ///< Data replicas gather the version that each made a share of.
  tie,        ///< Both ends of a tied matrix add their gradients.
  norm,       ///< The norm of gradients is found.
  servers,    ///< Parameter servers update, and answer.
  own,        ///< Data replicas exchange gradients in a way of the user's own.
};

inline constexpr int meeting_kinds = 10;

namespace mail {

/// Whoever does a performer's sums to that performer: one of a meeting's is over.
struct sum_over {
  int number; ///< As the meeting asked for it.
  std::exception_ptr failure = {};

  /// The number. \throws the failure
  int over() const {
    if (failure)
      std::rethrow_exception(failure);
    return number;
  }
};

/// What performers write each other for a meeting.
struct letter {
  using content =
    std::variant<collective_message, rows_to_expert, rows_from_expert, bucket_ready,
                 update_request, updated, version_there, norm_part, clip_by, tied_part,
                 push, pulled, sum_over, own_letter>;

  performer to;
  meeting_kind about;
  content what;
  /// What its bytes are counted as on the way to another rank; absent: it carries no
  /// tensor, or stays on its rank, and takes no time.
  std::optional<traffic> kind = {};
  std::int64_t bytes = 0;
};

} // namespace mail

using letters = std::vector<mail::letter>;

} // namespace troupe
