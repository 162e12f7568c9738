// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/tls_refusals.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace troupe {

namespace {

/// Alert of the other side as a sentence about our certificate; empty if it is about
/// something else.
const char* refusal_of_ours(int reason) {
  switch (reason) {
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    return "it asks for a certificate";
  case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    return "it refuses our certificate, which is of another authority";
  case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    return "it refuses our certificate, which has expired or is not valid yet";
  case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE: // a name is among the reasons
    return "it refuses our certificate, perhaps because it calls us by another name";
  case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
  case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    return "it refuses our certificate";
  default:
    return "";
  }
}

/// Why the other side's bytes are none of TLS 1.3; empty if they are.
const char* refusal_of_bytes(int reason) {
  switch (reason) {
  case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    return "it has shown no certificate";
  case SSL_R_UNSUPPORTED_PROTOCOL:
  case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    return "it does not speak TLS 1.3";
  case SSL_R_WRONG_VERSION_NUMBER:
  case SSL_R_HTTP_REQUEST:
  case SSL_R_HTTPS_PROXY_REQUEST:
  case SSL_R_PACKET_LENGTH_TOO_LONG:
  case SSL_R_BAD_RECORD_TYPE:
  case SSL_R_UNEXPECTED_MESSAGE:
    return "it does not speak TLS";
  default:
    return "";
  }
}

} // namespace

std::string certificate_refusal(long verify_result, const std::string& host) {
  switch (verify_result) {
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_IP_ADDRESS_MISMATCH:
    return "its certificate is for another name than '" + host + "'";
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    return "its certificate is signed by itself, not by our authority";
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    return "its certificate is of another authority";
  case X509_V_ERR_CERT_HAS_EXPIRED:
    return "its certificate has expired";
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return "its certificate is not valid yet; do the clocks agree?";
  case X509_V_ERR_INVALID_PURPOSE:
    return "its certificate is not for this side of a connection";
  default:
    return std::string{"its certificate is refused: "}
           + X509_verify_cert_error_string(verify_result);
  }
}

std::string handshake_refusal(unsigned long error) {
  const auto reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL)
    for (const std::string known : {refusal_of_ours(reason), refusal_of_bytes(reason)})
      if (!known.empty())
        return known;
  const auto* const text = ERR_reason_error_string(error);
  return std::string{"TLS: "} + (text != nullptr ? text : "an error without a name");
}

bool is_about_certificate(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_SSL
         && ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED;
}

bool is_cut_off(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_SSL
         && ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
}

} // namespace troupe
