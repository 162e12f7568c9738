// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/openssl_pointers.hpp"
#include "messaging/links/tls.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

namespace troupe {

/// OpenSSL's own end of a connection, which requires no certificate of the other end,
/// and presents the certificate that show() is given.
class raw_end : public byte_stream {
public:
  enum class side { client, server };

  raw_end(socket_descriptor socket, side which)
    : socket_(std::move(socket)),
      context_(SSL_CTX_new(TLS_method())),
      is_server_(which == side::server) {
    // nop
  }

  SSL_CTX* context() { return context_.get(); }

  void show(const tls_files& files) {
    REQUIRE(SSL_CTX_use_certificate_file(context(), files.certificate.c_str(),
                                         SSL_FILETYPE_PEM)
            == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(context(), files.key.c_str(), SSL_FILETYPE_PEM)
            == 1);
  }

  stream_progress shake_hands() override {
    if (!tls_) {
      tls_.reset(SSL_new(context()));
      SSL_set_fd(tls_.get(), socket_.get());
      if (is_server_)
        SSL_set_accept_state(tls_.get());
      else
        SSL_set_connect_state(tls_.get());
    }
    return progress_of(SSL_do_handshake(tls_.get()), 0);
  }

  stream_progress read(std::span<std::byte> to) override {
    std::size_t count = 0;
    const auto result = SSL_read_ex(tls_.get(), to.data(), to.size(), &count);
    return progress_of(result, count);
  }

  stream_progress write(std::span<const iovec> parts) override {
    std::size_t count = 0;
    const auto result =
      SSL_write_ex(tls_.get(), parts[0].iov_base, parts[0].iov_len, &count);
    return progress_of(result, count);
  }

  const std::string& failure() const override { return failure_; }
  int socket() const override { return socket_.get(); }

private:
  stream_progress progress_of(int result, std::size_t count) {
    switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_NONE:
      return {stream_progress::state::moved, count};
    case SSL_ERROR_WANT_READ:
      return {stream_progress::state::needs_read};
    case SSL_ERROR_WANT_WRITE:
      return {stream_progress::state::needs_write};
    default:
      failure_ = "raw";
      return {stream_progress::state::failed};
    }
  }

  socket_descriptor socket_;
  ssl_context_pointer context_;
  ssl_pointer tls_;
  bool is_server_;
  std::string failure_;
};

inline std::unique_ptr<raw_end> raw_client(socket_descriptor socket) {
  auto result = std::make_unique<raw_end>(std::move(socket), raw_end::side::client);
  SSL_CTX_set_verify(result->context(), SSL_VERIFY_NONE, nullptr);
  return result;
}

/// Sends bytes that no stream has made.
inline void send_raw(const socket_descriptor& to, const std::string& bytes) {
  REQUIRE(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL)
          == static_cast<ssize_t>(bytes.size()));
}

} // namespace troupe
