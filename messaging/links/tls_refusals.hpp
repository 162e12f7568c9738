// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <openssl/types.h>

#include <string>

namespace troupe {

// The cause of a failed TLS handshake, as a sentence about the other side: "its
// certificate expired on 2026-01-31 12:00 UTC".

/// Returns the cause why this side has refused the other side's certificate.
/// \pre is_about_certificate() is true for the error of the handshake
/// \param tls whose verification failed
/// \param host that the certificate had to name
std::string certificate_refusal(const SSL* tls, const std::string& host);

/// Returns the cause of a failed handshake in which this side has not refused the other
/// side's certificate. If the other side has refused our certificate by an alert, the
/// sentence names the certificate's likely fault, if one is known.
/// \param error of OpenSSL's queue, for which is_about_certificate() is false
std::string handshake_refusal(const SSL* tls, unsigned long error);

/// True if the error is a refused certificate, whose cause certificate_refusal()
/// returns.
bool is_about_certificate(unsigned long error);

/// True if the stream ended without TLS's closing alert.
bool is_cut_off(unsigned long error);

} // namespace troupe
