// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

// Why a TLS handshake failed, in words about the other side: "its certificate has
// expired".

/// \param verify_result of SSL_get_verify_result
/// \param host the name that the certificate had to be for
std::string certificate_refusal(long verify_result, const std::string& host);

/// \param error of OpenSSL's queue
std::string handshake_refusal(unsigned long error);

/// Tells whether certificate_refusal() knows more.
bool is_about_certificate(unsigned long error);

/// Tells apart an end that came without the goodbye of TLS.
bool is_cut_off(unsigned long error);

} // namespace troupe
