// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Facts about a certificate, for messages to users.

#include <openssl/types.h>

#include <string>
#include <string_view>

namespace troupe {

/// True if the certificate was valid only before now, or will be valid only later.
/// Null: false.
bool is_expired(const X509* certificate);
bool is_early(const X509* certificate);

/// The first and the last date of validity: "2026-01-31 12:00 UTC" \pre not null
std::string first_date(const X509* certificate);
std::string last_date(const X509* certificate);

/// A name from another process in quotes: at most 64 characters, with control
/// characters and others that are not ASCII replaced by question marks.
std::string in_quotes(std::string_view name);

/// The first three hosts that the certificate names: "'a', '127.0.0.1'". Null or none:
/// "no host".
std::string names_of(const X509* certificate);

} // namespace troupe
