// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/meeting_messages.hpp"
#include "messaging/wire/fields.hpp"

namespace troupe::wire {

/// Writes a meeting message, without buffers.
/// \throws std::logic_error for a message that never leaves the process
void write(schema::Letter::Builder to, const mail::meeting_message& from);

/// Reads a meeting message, with empty buffers.
mail::meeting_message read(schema::Letter::Reader from, read_budget& left);

} // namespace troupe::wire
