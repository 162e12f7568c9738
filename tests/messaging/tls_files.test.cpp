// SPDX-License-Identifier: BSD-3-Clause
// The files of an identity.

#include "messaging/links/openssl_pointers.hpp"
#include "messaging/links/tls.hpp"
#include "tests/messaging/stream_ends.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <openssl/pem.h>

namespace troupe::tls_files_test {

using Catch::Matchers::ContainsSubstring;

namespace {

std::string error_of(const tls_files& files) {
  const auto result = tls_identity::from(files);
  REQUIRE_FALSE(result);
  return result.error();
}

} // namespace

TEST_CASE("files that make no identity are refused with a sentence", "[tls]") {
  const test_authority authority, foreign;
  const auto good = authority.files("a");
  REQUIRE(tls_identity::from(good));
  auto files = good;
  const auto missing = good.key.parent_path() / "missing";
  SECTION("missing") {
    files.*GENERATE(&tls_files::certificate, &tls_files::key, &tls_files::authority) =
      missing;
    CHECK_THAT(error_of(files), ContainsSubstring("cannot read the ")
                                  && ContainsSubstring(
                                    missing.string() + ": No such file or directory"));
  }
  SECTION("a folder") {
    files.authority = good.key.parent_path();
    CHECK_THAT(error_of(files), ContainsSubstring("is not a file"));
  }
  SECTION("another key") {
    files.key = foreign.files("a").key;
    CHECK(error_of(files)
          == "the key " + files.key.string() + " is not that of the certificate "
               + files.certificate.string());
  }
  SECTION("a key that others may read") {
    const auto mode = GENERATE(0640, 0604, 0620, 0601);
    std::filesystem::permissions(files.key, std::filesystem::perms(mode));
    CHECK_THAT(error_of(files), ContainsSubstring("chmod 600 " + files.key.string()));
  }
  SECTION("certificate and key exchanged") {
    std::swap(files.certificate, files.key);
    std::filesystem::permissions(files.key, std::filesystem::perms{0600});
    CHECK(error_of(files) == files.certificate.string() + " has no certificate in PEM");
  }
  SECTION("a key behind a passphrase") {
    const bio_pointer from{BIO_new_file(good.key.c_str(), "r")};
    const key_pointer key{
      PEM_read_bio_PrivateKey(from.get(), nullptr, nullptr, nullptr)};
    const bio_pointer to{BIO_new_file(good.key.c_str(), "w")};
    const unsigned char phrase[] = "secret";
    REQUIRE(PEM_write_bio_PrivateKey(to.get(), key.get(), EVP_aes_128_cbc(), phrase, 6,
                                     nullptr, nullptr)
            == 1);
    BIO_flush(to.get());
    CHECK(error_of(files)
          == files.key.string() + " has no private key in PEM without a passphrase");
  }
  SECTION("an authority that is none") {
    files.authority = files.certificate;
    CHECK(error_of(files)
          == files.authority.string() + " is not the certificate of an authority");
  }
}

} // namespace troupe::tls_files_test
