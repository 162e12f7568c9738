// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/letters.hpp"
#include "messaging/wire/fields.hpp"

namespace troupe::wire {

/// Writes a meeting message, without buffers.
/// \throws std::logic_error for a message that never leaves a rank
void write(schema::Letter::Builder to, const mail::letter& from);

/// Reads a meeting message, with empty buffers.
mail::letter read(schema::Letter::Reader from, allowance& left);

} // namespace troupe::wire
