// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/control.hpp"
#include "messaging/mail/letters.hpp"
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

// Mail between processes as bytes: Cap'n Proto messages (mail.capnp). The values of
// tensors are not among them: they travel behind, as they are in memory.

using bytes = std::vector<unsigned char>;

/// An actor, wherever it stands.
struct address {
  enum class kind : std::uint8_t {
    coordinator,
    recorder,
    scheduler,       ///< Of rank `number`.
    stage,           ///< At `where`.
    optimizer_shard, ///< At `where`.
    expert,          ///< `number` in the network's list, with its host `where`.
    data_source,     ///< Of the pipeline whose first stage is at `where`.
  };

  kind what = kind::coordinator;
  position where{};
  int number = 0;

  bool operator==(const address&) const = default;
};

/// What actors on different nodes write each other.
using actor_mail =
  std::variant<activation, labels, gradient, mail::letter, mail::explain, mail::hold,
               mail::proceed, mail::go_on, mail::stop, mail::stop_after, mail::collect,
               mail::samples, mail::sums, mail::microbatch_loss, mail::version_made,
               mail::expert_load, mail::finished, mail::held, mail::snapshot,
               mail::collected, mail::save, mail::copied, mail::saved, mail::recall,
               mail::recalled, mail::waiting_for, mail::begun, mail::at_checkpoint,
               mail::failed>;

/// A mail, and the sizes in bytes of the tensors that travel behind it, in order: one
/// for each of buffers_of() and then of arrays_of(); 0 for an empty buffer.
struct addressed_mail {
  address to;
  actor_mail what;
  std::vector<std::int64_t> tensors;
};

/// Where the buffers of a mail are that travel behind it, in order: of a decoded mail
/// there are as many as it had, all of them empty. Loans to experts never travel.
std::vector<buffer*> buffers_of(actor_mail& what);

/// The same of arrays: those of mail::version_made, parameters first.
std::vector<std::vector<float>*> arrays_of(actor_mail& what);

/// How many buffers and arrays of a mail travel behind it.
std::size_t tensors_of(const actor_mail& what);

/// What lead and nodes say to each other.
using node_mail =
  std::variant<mail::prepare, mail::prepared, mail::refused, mail::connect,
               mail::connected, mail::build, mail::ready, mail::clock_probe,
               mail::begin_run, mail::pause_clock, mail::resume_clock, mail::beat,
               mail::lost_node, mail::end_run, mail::node_report, mail::ask_status,
               mail::node_status, mail::ask_identity, mail::identity>;

/// Buffers are left out, and so are arrays that travel behind.
/// \throws std::logic_error for a letter that never leaves its rank, and for other
/// sizes than of its tensors
bytes encode(const addressed_mail& all);
bytes encode(const node_mail& what);

// These take bytes of anybody. On error say what is wrong with them.
tl::expected<addressed_mail, std::string>
decode_mail(std::span<const unsigned char> from);
tl::expected<node_mail, std::string>
decode_node_mail(std::span<const unsigned char> from);

} // namespace troupe::wire
