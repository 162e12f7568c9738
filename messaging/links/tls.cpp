// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/tls.hpp"

#include "messaging/links/tls_stream.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace troupe {

namespace {

namespace fs = std::filesystem;
using state = stream_progress::state;

/// An error about a file, as a sentence.
struct unusable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr const char* ciphers =
  "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/// The most certificates between ours and the authority's.
constexpr int most_between = 1;

/// Opens a file for OpenSSL to read. \param secret refuses a file that others may read
bio_pointer opened(const char* description, const fs::path& file, bool secret = false) {
  const auto fail = [&] {
    const auto why = std::system_category().message(errno);
    throw unusable(std::string{"cannot read the "} + description + " " + file.string()
                   + ": " + why);
  };
  socket_descriptor open{::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  struct stat status {};
  if (!open || ::fstat(open.get(), &status) != 0)
    fail();
  if (!S_ISREG(status.st_mode))
    throw unusable(std::string{"the "} + description + " " + file.string()
                   + " is not a file");
  if (secret && (status.st_mode & 077) != 0)
    throw unusable("others may read the key " + file.string() + "; run chmod 600 "
                   + file.string());
  return bio_pointer{BIO_new_fd(open.release(), BIO_CLOSE)};
}

[[noreturn]] void refuse(const fs::path& file, const char* reason) {
  throw unusable(file.string() + " " + reason);
}

/// Refuses the request for a passphrase: OpenSSL itself would ask at the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

certificate_pointer next_certificate(BIO* from) {
  return certificate_pointer{PEM_read_bio_X509(from, nullptr, no_passphrase, nullptr)};
}

void use_authority(SSL_CTX* context, const fs::path& file) {
  const auto from = opened("authority's certificate", file);
  int count = 0;
  for (; const auto certificate = next_certificate(from.get()); ++count)
    if (X509_check_ca(certificate.get()) != 1
        || X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate.get()) != 1)
      refuse(file, "is not the certificate of an authority");
  if (count == 0)
    refuse(file, "has no certificate in PEM");
}

void use_certificate(SSL_CTX* context, const fs::path& file) {
  const auto from = opened("certificate", file);
  const auto certificate = next_certificate(from.get());
  if (!certificate)
    refuse(file, "has no certificate in PEM");
  if (SSL_CTX_use_certificate(context, certificate.get()) != 1)
    refuse(file, "has a certificate that TLS cannot use");
  while (const auto above = next_certificate(from.get()))
    SSL_CTX_add1_chain_cert(context, above.get());
}

void use_key(SSL_CTX* context, const tls_files& files) {
  const auto from = opened("key", files.key, true);
  const key_pointer key{
    PEM_read_bio_PrivateKey(from.get(), nullptr, no_passphrase, nullptr)};
  if (!key)
    refuse(files.key, "has no private key in PEM without a passphrase");
  if (X509_check_private_key(SSL_CTX_get0_certificate(context), key.get()) != 1)
    throw unusable("the key " + files.key.string() + " is not that of the certificate "
                   + files.certificate.string());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    refuse(files.key, "has a key that TLS cannot use");
}

ssl_context_pointer context_for(const tls_files& files) {
  ssl_context_pointer result{SSL_CTX_new(TLS_method())};
  auto* const context = result.get();
  if (!result || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1
      || SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1
      || SSL_CTX_set_ciphersuites(context, ciphers) != 1
      || SSL_CTX_set_num_tickets(context, 0) != 1)
    throw unusable("the OpenSSL of this machine has no TLS 1.3");
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION
                                 | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // bytes; more than a single record
  constexpr std::size_t read_at_once = std::size_t{1} << 18;
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, read_at_once);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_verify_depth(context, most_between);
  use_authority(context, files.authority);
  use_certificate(context, files.certificate);
  use_key(context, files);
  return result;
}

/// Requires that the other side's certificate is for this name or address. \returns
/// success
bool expect(SSL* tls, const std::string& host) {
  if (host.empty()
      // OpenSSL would check no name, or another one
      || host.find('\0') != std::string::npos)
    return false;
  auto* const rules = SSL_get0_param(tls);
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
                                           | X509_CHECK_FLAG_NO_WILDCARDS);
  in6_addr any{};
  if (::inet_pton(AF_INET, host.c_str(), &any) == 1
      || ::inet_pton(AF_INET6, host.c_str(), &any) == 1)
    return X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1;
  return SSL_set1_host(tls, host.c_str()) == 1
         && SSL_set_tlsext_host_name(tls, host.c_str()) == 1;
}

/// A stream whose handshake fails with a given sentence.
class never_a_stream : public byte_stream {
public:
  never_a_stream(socket_descriptor socket, const std::string& why)
    : socket_(std::move(socket)), why_(why) {
    // nop
  }

  stream_progress shake_hands() override { return {state::failed}; }
  stream_progress read(std::span<std::byte>) override { return {state::failed}; }
  stream_progress write(std::span<const iovec>) override { return {state::failed}; }
  const std::string& failure() const override { return why_; }
  int socket() const override { return socket_.get(); }

private:
  socket_descriptor socket_;
  std::string why_;
};

class openssl_identity : public tls_identity {
public:
  explicit openssl_identity(const tls_files& files) : context_(context_for(files)) {
    // nop
  }

  std::unique_ptr<byte_stream> to_server(socket_descriptor socket,
                                         const std::string& host) override {
    auto tls = new_tls(context_.get());
    SSL_set_connect_state(tls.get());
    if (!expect(tls.get(), host))
      return std::make_unique<never_a_stream>(
        std::move(socket), "'" + host + "' is not the name of a host");
    return tls_stream(std::move(tls), std::move(socket), host);
  }

  std::unique_ptr<byte_stream> to_client(socket_descriptor socket) override {
    const auto make = [context = context_] {
      auto tls = new_tls(context.get());
      SSL_set_accept_state(tls.get());
      return tls;
    };
    return tls_server_stream(make, std::move(socket));
  }

private:
  static ssl_pointer new_tls(SSL_CTX* context) {
    ssl_pointer result{SSL_new(context)};
    if (!result)
      throw std::runtime_error("OpenSSL made no TLS connection");
    return result;
  }

  std::shared_ptr<SSL_CTX> context_;
};

} // namespace

tl::expected<std::shared_ptr<tls_identity>, std::string>
tls_identity::from(const tls_files& files) {
  try {
    ERR_clear_error();
    auto result = std::make_shared<openssl_identity>(files);
    ERR_clear_error(); // OpenSSL reports the end of a file as an error
    return result;
  } catch (const unusable& why) {
    ERR_clear_error();
    return tl::make_unexpected(std::string{why.what()});
  }
}

} // namespace troupe
