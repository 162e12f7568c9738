// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <openssl/types.h>

#include <string>

namespace troupe {

// The cause of a failed TLS handshake, as a sentence about the other side: "its
// certificate expired on 2026-01-31 12:00 UTC".

/// The cause of a refused certificate of the other side.
/// \param tls whose verification failed \param host that the certificate had to name
std::string certificate_refusal(const SSL* tls, const std::string& host);

/// The cause of any other failure. An alert of the other side about our certificate is
/// explained by that certificate. \param error of OpenSSL's queue
std::string handshake_refusal(const SSL* tls, unsigned long error);

/// True if certificate_refusal() knows the cause.
bool is_about_certificate(unsigned long error);

/// True if the stream ended without TLS's closing alert.
bool is_cut_off(unsigned long error);

} // namespace troupe
