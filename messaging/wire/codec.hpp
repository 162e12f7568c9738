// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/control.hpp"
#include "messaging/mail/meeting_messages.hpp"
#include "messaging/mail/nodes.hpp"
#include "messaging/mail/reports.hpp"
#include "messaging/mail/tensors.hpp"

#include <tl/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace troupe::wire {

// Encodes and decodes messages between processes as Cap'n Proto bytes (mail.capnp). The
// bytes do not include the values of tensors. The values follow the bytes, in the form
// that the values have in memory.

using bytes = std::vector<unsigned char>;

/// The address of an actor on any node.
struct address {
  enum class kind : std::uint8_t {
    coordinator,
    recorder,
    scheduler,       ///< The scheduler of rank `number`.
    stage,           ///< The stage at `where`.
    optimizer_shard, ///< The optimizer shard of the stage at `where`.
    /// Expert `number` in the network's list; the host is the stage at `where`.
    expert,
    /// The data source of the pipeline whose first stage is at `where`.
    data_source,
  };

  kind actor = kind::coordinator;
  position where{};
  int number = 0;

  bool operator==(const address&) const = default;
};

/// A message between actors on different nodes.
using actor_message =
  std::variant<activation, labels, gradient, mail::meeting_message, mail::explain,
               mail::hold, mail::resume, mail::resume_from_checkpoint, mail::stop,
               mail::stop_after, mail::collect, mail::samples, mail::sums,
               mail::microbatch_loss, mail::version_made, mail::expert_load,
               mail::finished, mail::held, mail::snapshot, mail::collected, mail::save,
               mail::copied, mail::saved, mail::fetch_kept_state, mail::kept_state,
               mail::waiting_for, mail::started, mail::at_checkpoint, mail::failed,
               mail::update_part>;

/// A message with a receiver, and the sizes in bytes of the tensors that follow the
/// message. The sizes are in the order of buffers_of(), then of arrays_of(). An empty
/// buffer has size 0.
struct addressed_message {
  address to;
  actor_message message;
  std::vector<std::int64_t> tensors;
};

/// Returns the buffers that follow a message, in order. A decoded message has the same
/// number of buffers as the sent message; all are empty. Loans to experts never leave
/// the process. The pointers are valid as long as the message does not change.
std::vector<buffer*> buffers_of(actor_message& message);

/// Returns the arrays that follow a message. Only mail::version_made has arrays:
/// parameters, then gradients. The pointers are valid as long as the message does not
/// change.
std::vector<std::vector<float>*> arrays_of(actor_message& message);

/// The number of buffers and arrays that follow a message.
std::size_t tensor_count(const actor_message& message);

/// True for messages that may have tensors, and travel on tensor links. All other
/// messages of one type take control lines, so the order is kept.
bool may_have_tensors(const actor_message& message);

/// A message between the leader and a node.
using node_message =
  std::variant<mail::prepare, mail::prepared, mail::refused, mail::connect,
               mail::connected, mail::build, mail::ready, mail::clock_probe,
               mail::start_run, mail::pause_clock, mail::resume_clock, mail::beat,
               mail::lost_node, mail::end_run, mail::node_report, mail::ask_status,
               mail::node_status, mail::ask_identity, mail::identity>;

/// Encodes a message, without the values of buffers and arrays.
/// \throws std::logic_error for a message that never leaves the process
/// \throws std::logic_error for a tensor in the message that GPU work may still write
/// \throws std::logic_error if the number of `tensors` is not tensor_count()
bytes encode(const addressed_message& addressed);
/// Encodes a message between the leader and a node.
bytes encode(const node_message& content);

// Both functions decode bytes from any process, and accept any alignment. The error
// says which part of the bytes is invalid.
tl::expected<addressed_message, std::string>
decode_actor_message(std::span<const unsigned char> from);
tl::expected<node_message, std::string>
decode_node_message(std::span<const unsigned char> from);

} // namespace troupe::wire
