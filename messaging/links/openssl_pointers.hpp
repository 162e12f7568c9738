// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace troupe {

// Owning pointers to OpenSSL's objects. A pointer is null if OpenSSL could not make the
// object.

/// Deletes an object by a function of OpenSSL.
template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

using bio_pointer = std::unique_ptr<BIO, freed_by<BIO_free_all>>;
using bio_method_pointer = std::unique_ptr<BIO_METHOD, freed_by<BIO_meth_free>>;
using big_number_pointer = std::unique_ptr<BIGNUM, freed_by<BN_free>>;
using key_pointer = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate_pointer = std::unique_ptr<X509, freed_by<X509_free>>;
using extension_pointer =
  std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>>;
using ssl_pointer = std::unique_ptr<SSL, freed_by<SSL_free>>;
using ssl_context_pointer = std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>>;

} // namespace troupe
