// SPDX-License-Identifier: BSD-3-Clause
// Certificates as OpenSSL reads them.

#include "messaging/links/certificates.hpp"

#include "messaging/links/openssl_pointers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <openssl/pem.h>

#include <set>

namespace troupe::certificates_test {

namespace {

certificate_pointer read(const std::string& pem) {
  const bio_pointer from{BIO_new_mem_buf(pem.data(), -1)};
  certificate_pointer result{PEM_read_bio_X509(from.get(), nullptr, nullptr, nullptr)};
  REQUIRE(result);
  return result;
}

const validity week = validity::of_days(7);

} // namespace

TEST_CASE("names of hosts are letters, digits, hyphens and dots, or addresses",
          "[certificates]") {
  for (const auto* const good :
       {"a", "node-1", "Node1.example.org", "127.0.0.1", "::1", "fe80::12", "1a.b"})
    CHECK(is_host_name(good));
  for (const auto* const bad : {"", ".", "..", "a..b", ".a", "a.", "a/b", "../a", "-a",
                                "a-", "a b", "*.a", "a,b", "a:1", "[::1]", "é", "a_b"})
    CHECK_FALSE(is_host_name(bad));
  CHECK(is_host_name(std::string(63, 'a')));
  CHECK_FALSE(is_host_name(std::string(64, 'a')));
  CHECK_FALSE(is_host_name(std::string{"::1\0/", 5}));
}

TEST_CASE("an authority signs hosts and no authorities", "[certificates]") {
  const auto authority = read(make_authority(week).certificate);
  CHECK(X509_check_ca(authority.get()) == 1);
  CHECK(X509_get_pathlen(authority.get()) == 0);
  CHECK(X509_get_key_usage(authority.get()) == KU_KEY_CERT_SIGN);
  CHECK(X509_self_signed(authority.get(), 1) == 1);
}

TEST_CASE("a host's certificate is its authority's, for its name, for both sides",
          "[certificates]") {
  const auto authority = make_authority(week);
  const auto issuer = read(authority.certificate);
  const auto named = read(make_certificate(authority, "b.c", week)->certificate);
  const auto numbered = read(make_certificate(authority, "::1", week)->certificate);
  for (auto* const one : {named.get(), numbered.get()}) {
    CHECK(X509_verify(one, X509_get0_pubkey(issuer.get())) == 1);
    CHECK(X509_check_issued(issuer.get(), one) == X509_V_OK);
    CHECK(X509_check_ca(one) == 0);
    CHECK(X509_get_key_usage(one) == KU_DIGITAL_SIGNATURE);
    CHECK(X509_get_extended_key_usage(one) == (XKU_SSL_SERVER | XKU_SSL_CLIENT));
    CHECK(X509_get_signature_nid(one) == NID_ecdsa_with_SHA256);
    CHECK(EVP_PKEY_get_bits(X509_get0_pubkey(one)) == 256);
  }
  constexpr unsigned only_san = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
  CHECK(X509_check_host(named.get(), "b.c", 0, only_san, nullptr) == 1);
  CHECK(X509_check_host(named.get(), "b", 0, only_san, nullptr) == 0);
  CHECK(X509_check_ip_asc(numbered.get(), "::1", 0) == 1);
  CHECK(X509_check_ip_asc(numbered.get(), "::2", 0) == 0);
}

TEST_CASE("a certificate is good from an hour ago for its days", "[certificates]") {
  const auto one = read(make_authority(validity::of_days(7)).certificate);
  const auto good_at = [&](std::time_t when) {
    return X509_cmp_time(X509_get0_notBefore(one.get()), &when) < 0
           && X509_cmp_time(X509_get0_notAfter(one.get()), &when) > 0;
  };
  const auto now = std::time(nullptr);
  CHECK(good_at(now));
  CHECK(good_at(now - 3500));
  CHECK_FALSE(good_at(now - 3700));
  CHECK(good_at(now + 7 * 86400 - 100));
  CHECK_FALSE(good_at(now + 7 * 86400 + 100));
}

TEST_CASE("no two certificates have a number or a key alike", "[certificates]") {
  const auto authority = make_authority(week);
  std::set<std::string> numbers, keys;
  for (int i = 0; i < 20; ++i) {
    const auto pair = make_certificate(authority, "b", week);
    const auto one = read(pair->certificate);
    const big_number_pointer number{
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(one.get()), nullptr)};
    CHECK(BN_num_bits(number.get()) > 64);
    CHECK(BN_num_bits(number.get()) <= 128);
    numbers.insert(std::to_string(BN_get_word(number.get())) + pair->certificate);
    keys.insert(pair->key);
  }
  CHECK(numbers.size() == 20);
  CHECK(keys.size() == 20);
}

TEST_CASE("what is no authority signs nothing", "[certificates]") {
  const auto authority = make_authority(week);
  const auto other = make_authority(week);
  const auto error_of = [](const certificate_pair& by) {
    return make_certificate(by, "b", week).error();
  };
  CHECK(error_of(*make_certificate(authority, "a", week))
        == "the authority's certificate does not belong to an authority");
  CHECK(error_of({"", ""})
        == "the authority's certificate does not belong to an authority");
  CHECK(error_of({authority.certificate, "?"})
        == "the authority's key is no private key in PEM");
  CHECK(error_of({authority.certificate, other.key})
        == "the authority's key is not that of its certificate");
  CHECK(error_of(make_authority({1'000'000'000, 1'000'086'400}))
        == "the authority's certificate has expired");
}

} // namespace troupe::certificates_test
