// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/certificates.hpp"

#include "messaging/links/openssl_pointers.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <stdexcept>

namespace troupe {

namespace {

constexpr std::size_t longest_label = 63;
constexpr std::size_t longest_name = 253;
constexpr int serial_bits = 128;

bool is_address(const std::string& name) {
  in6_addr any{};
  return ::inet_pton(AF_INET, name.c_str(), &any) == 1
         || ::inet_pton(AF_INET6, name.c_str(), &any) == 1;
}

bool is_label(const std::string& label) {
  return !label.empty() && label.size() <= longest_label && label.front() != '-'
         && label.back() != '-' && std::ranges::all_of(label, [](char c) {
              return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                     || (c >= '0' && c <= '9') || c == '-';
            });
}

/// Checks the result of an OpenSSL call.
/// \throws std::runtime_error unless the call has succeeded
void check(int result, const char* operation) {
  if (result > 0)
    return;
  const auto* const why = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  throw std::runtime_error(std::string{"OpenSSL cannot "} + operation
                           + (why != nullptr ? std::string{": "} + why : ""));
}

/// Checks that OpenSSL has made an object, and returns the object.
template <class Pointer>
Pointer checked(Pointer object, const char* name) {
  check(object ? 1 : 0, name);
  return object;
}

bio_pointer memory_of(const std::string& pem) {
  return checked(bio_pointer{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))},
                 "read memory");
}

std::string content_of(BIO* memory) {
  char* begin = nullptr;
  const auto size = BIO_get_mem_data(memory, &begin);
  return {begin, static_cast<std::size_t>(size)};
}

certificate_pair pem_of(X509* certificate, EVP_PKEY* key) {
  const auto first = checked(bio_pointer{BIO_new(BIO_s_mem())}, "write memory");
  const auto second = checked(bio_pointer{BIO_new(BIO_s_secmem())}, "write memory");
  check(PEM_write_bio_X509(first.get(), certificate), "write a certificate");
  check(
    PEM_write_bio_PrivateKey(second.get(), key, nullptr, nullptr, 0, nullptr, nullptr),
    "write a key");
  return {content_of(first.get()), content_of(second.get())};
}

/// A certificate with the fields that every certificate here has: number, times,
/// subject and key.
certificate_pointer blank(EVP_PKEY* key, const std::string& subject,
                          const validity& when) {
  auto result = checked(certificate_pointer{X509_new()}, "make a certificate");
  auto* const x = result.get();
  const auto serial = checked(big_number_pointer{BN_new()}, "make a number");
  check(BN_rand(serial.get(), serial_bits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY),
        "draw a number");
  check(BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(x)) != nullptr,
        "number");
  check(X509_set_version(x, X509_VERSION_3), "set the version");
  check(ASN1_TIME_set(X509_getm_notBefore(x), when.from) != nullptr, "set a time");
  check(ASN1_TIME_set(X509_getm_notAfter(x), when.until) != nullptr, "set a time");
  check(X509_NAME_add_entry_by_txt(
          X509_get_subject_name(x), "CN", MBSTRING_UTF8,
          reinterpret_cast<const unsigned char*>(subject.data()),
          static_cast<int>(std::min(subject.size(), std::size_t{ub_common_name})), -1,
          0),
        "set a subject");
  check(X509_set_pubkey(x, key), "set a key");
  return result;
}

/// Adds an extension, with a value in the syntax of OpenSSL's configuration files.
void add(X509* certificate, X509* issuer, int extension_id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509V3_set_ctx_nodb(&context);
  const extension_pointer extension{
    X509V3_EXT_nconf_nid(nullptr, &context, extension_id, value.c_str())};
  check(extension ? X509_add_ext(certificate, extension.get(), -1) : 0,
        "add an extension");
}

void sign(X509* certificate, X509* issuer, EVP_PKEY* key) {
  check(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)), "set a name");
  check(X509_sign(certificate, key, EVP_sha256()), "sign");
}

key_pointer new_key() {
  return checked(key_pointer{EVP_EC_gen("P-256")}, "make a key");
}

int no_passphrase(char*, int, int, void*) {
  return -1;
}

} // namespace

validity validity::of_days(int days) {
  constexpr std::time_t hour = 3600;
  const auto now = std::time(nullptr);
  return {now - hour, now + days * 24 * hour};
}

bool is_host_name(const std::string& name) {
  if (name.empty() || name.size() > longest_name)
    return false;
  if (name.find('\0') == std::string::npos && is_address(name))
    return true;
  std::size_t begin = 0;
  for (auto end = name.find('.'); end != std::string::npos;
       end = name.find('.', begin)) {
    if (!is_label(name.substr(begin, end - begin)))
      return false;
    begin = end + 1;
  }
  return is_label(name.substr(begin));
}

certificate_pair make_authority(const validity& when) {
  const auto key = new_key();
  const auto result = blank(key.get(), "troupe authority", when);
  auto* const x = result.get();
  add(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add(x, x, NID_key_usage, "critical,keyCertSign");
  add(x, x, NID_subject_key_identifier, "hash");
  sign(x, x, key.get());
  return pem_of(x, key.get());
}

tl::expected<certificate_pair, std::string>
make_certificate(const certificate_pair& authority, const std::string& name,
                 const validity& when, certificate_use use) {
  const auto from = memory_of(authority.certificate);
  const certificate_pointer issuer{
    PEM_read_bio_X509(from.get(), nullptr, no_passphrase, nullptr)};
  const auto key_from = memory_of(authority.key);
  const key_pointer issuer_key{
    PEM_read_bio_PrivateKey(key_from.get(), nullptr, no_passphrase, nullptr)};
  ERR_clear_error();
  if (!issuer || X509_check_ca(issuer.get()) != 1)
    return tl::make_unexpected(
      "the authority's certificate does not belong to an authority");
  if (X509_cmp_current_time(X509_get0_notAfter(issuer.get())) < 0)
    return tl::make_unexpected("the authority's certificate has expired");
  if (!issuer_key)
    return tl::make_unexpected("the authority's key is no private key in PEM");
  if (X509_check_private_key(issuer.get(), issuer_key.get()) != 1)
    return tl::make_unexpected("the authority's key is not that of its certificate");
  const auto key = new_key();
  const auto result = blank(key.get(), name, when);
  auto* const x = result.get();
  add(x, issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  add(x, issuer.get(), NID_key_usage, "critical,digitalSignature");
  add(x, issuer.get(), NID_ext_key_usage,
      use == certificate_use::server_and_client ? "serverAuth,clientAuth"
                                                : "serverAuth");
  add(x, issuer.get(), NID_subject_key_identifier, "hash");
  add(x, issuer.get(), NID_authority_key_identifier, "keyid:always");
  add(x, issuer.get(), NID_subject_alt_name,
      (is_address(name) ? "IP:" : "DNS:") + name);
  sign(x, issuer.get(), issuer_key.get());
  return pem_of(x, key.get());
}

} // namespace troupe
