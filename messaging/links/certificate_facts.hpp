// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Facts of a certificate for sentences about it.

#include <openssl/types.h>

#include <string>
#include <string_view>

namespace troupe {

/// Whether it was valid before now, or will be valid later; null: neither.
bool is_expired(const X509* certificate);
bool is_early(const X509* certificate);

/// "2026-01-31 12:00 UTC" \pre not null
std::string first_date(const X509* certificate);
std::string last_date(const X509* certificate);

/// A name from outside in quotes, at most 64 characters of it, none a control
/// character.
std::string in_quotes(std::string_view name);

/// The hosts that it names: "'a', '127.0.0.1'", the first three. Null or none: "no
/// host".
std::string names_of(const X509* certificate);

} // namespace troupe
