// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/letters.hpp"
#include "messaging/wire/fields.hpp"

namespace troupe::wire {

/// \throws std::logic_error for a letter that never leaves its rank
void write(schema::Letter::Builder to, const mail::letter& from);

/// Its buffers are empty.
mail::letter read(schema::Letter::Reader from, allowance& left);

} // namespace troupe::wire
