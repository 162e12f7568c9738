// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Facts about a certificate, for messages to users.

#include <openssl/types.h>

#include <string>
#include <string_view>

namespace troupe {

/// True if the certificate's validity has ended; false if `certificate` is null.
bool is_expired(const X509* certificate);
/// True if the certificate's validity has not begun; false if `certificate` is null.
bool is_early(const X509* certificate);

/// The first date of validity: "2026-01-31 12:00 UTC".
/// \pre not null
std::string first_date(const X509* certificate);
/// The last date of validity, in the form of first_date().
/// \pre not null
std::string last_date(const X509* certificate);

/// Returns a name from another process in quotes. Control characters, and characters
/// that are not ASCII, become question marks. A name of more than 64 characters is cut,
/// and ".." follows.
std::string in_quotes(std::string_view name);

/// Returns the hosts among the certificate's first three names: "'a', '127.0.0.1'". If
/// the certificate has more names, ", .." follows. "no host" if no host is among these
/// names, or if `certificate` is null.
std::string names_of(const X509* certificate);

} // namespace troupe
