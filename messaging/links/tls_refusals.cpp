// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/tls_refusals.hpp"

#include "messaging/links/certificate_facts.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace troupe {

namespace {

constexpr const char* refuses_ours = "it refuses this side's certificate";

/// The cause of an alert about the dates of our certificate.
std::string refused_dates(const X509* ours) {
  if (is_expired(ours))
    return std::string{refuses_ours} + ", which expired on " + last_date(ours);
  if (is_early(ours))
    return std::string{refuses_ours} + ", which is valid from " + first_date(ours)
           + " on";
  return std::string{refuses_ours} + ", which is valid from " + first_date(ours)
         + " to " + last_date(ours) + "; do the clocks agree?";
}

/// The cause of an alert that our certificate is bad. OpenSSL sends this alert for a
/// wrong name, and for a certificate that is not valid yet.
std::string refused_as_bad(const SSL* tls, const X509* ours) {
  if (is_early(ours) || is_expired(ours))
    return refused_dates(ours);
  if (SSL_is_server(tls) == 0)
    return refuses_ours;
  const auto* const called = SSL_get_servername(tls, TLSEXT_NAMETYPE_host_name);
  return std::string{refuses_ours} + ", which is for " + names_of(ours)
         + (called != nullptr ? ", but it connects to " + in_quotes(called)
                              : ", but it connects to another name");
}

/// The cause of an alert that our certificate is for another purpose.
std::string refused_purpose(const SSL* tls, X509* ours) {
  const bool server = SSL_is_server(tls) != 0;
  const auto purpose = server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  return X509_check_purpose(ours, purpose, 0) == 1
           ? refuses_ours
           : std::string{refuses_ours} + ", which is not for "
               + (server ? "servers" : "clients")
               + ": a node needs a certificate for servers and clients";
}

/// An alert of the other side as a sentence about our certificate; empty if the alert
/// has another subject.
std::string refusal_of_ours(const SSL* tls, int reason) {
  auto* const ours = SSL_get_certificate(tls);
  switch (reason) {
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    return "it asks for a certificate";
  case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    return std::string{refuses_ours} + ", as it trusts another authority";
  case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    return ours == nullptr ? refuses_ours : refused_dates(ours);
  case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    return ours == nullptr ? refuses_ours : refused_as_bad(tls, ours);
  case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    return ours == nullptr ? refuses_ours : refused_purpose(tls, ours);
  case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    return refuses_ours;
  default:
    return {};
  }
}

/// The reason why the other side's bytes are not TLS 1.3; empty if the bytes are.
const char* refusal_of_bytes(int reason) {
  switch (reason) {
  case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    return "it sent no certificate";
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

std::string certificate_refusal(const SSL* tls, const std::string& host) {
  const auto result = SSL_get_verify_result(tls);
  // begins with the other side's certificate
  const auto* const chain = SSL_get0_verified_chain(tls);
  const auto* const theirs =
    chain != nullptr && sk_X509_num(chain) > 0 ? sk_X509_value(chain, 0) : nullptr;
  switch (result) {
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_IP_ADDRESS_MISMATCH:
    return "its certificate is for " + names_of(theirs) + ", not for '" + host + "'";
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    return "its certificate is signed by itself, not by this side's authority";
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    return "its certificate is of another authority";
  case X509_V_ERR_CERT_HAS_EXPIRED:
    return is_expired(theirs)
             ? "its certificate expired on " + last_date(theirs)
             : "the certificate of the authority that signed its certificate expired";
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return is_early(theirs) ? "its certificate is valid from " + first_date(theirs)
                                + " on; do the clocks agree?"
                            : "the certificate of the authority that signed its "
                              "certificate is not valid yet; do the clocks agree?";
  case X509_V_ERR_INVALID_PURPOSE:
    return std::string{"its certificate is not for "}
           + (SSL_is_server(tls) != 0 ? "clients" : "servers")
           + ": a node needs a certificate for servers and clients";
  case X509_V_ERR_CERT_CHAIN_TOO_LONG:
    return "more than one authority lies between its certificate and this side's "
           "authority";
  case X509_V_ERR_INVALID_CA:
    return "its certificate is signed by a certificate that is not an authority's";
  default:
    return std::string{"its certificate is refused: "}
           + X509_verify_cert_error_string(result);
  }
}

std::string handshake_refusal(const SSL* tls, unsigned long error) {
  const auto reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL)
    for (const std::string& known :
         {refusal_of_ours(tls, reason), std::string{refusal_of_bytes(reason)}})
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
