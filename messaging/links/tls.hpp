// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/tls_files.hpp"

#include <tl/expected.hpp>

#include <memory>
#include <string>

namespace troupe {

/// Makes streams of TLS 1.3. Both sides of a stream must have certificates of one
/// authority. Thread-safe.
class tls_identity {
public:
  /// Reads the files. The error says which file is missing, unreadable, or invalid,
  /// that others may read the key, or that OpenSSL lacks TLS 1.3.
  static tl::expected<std::shared_ptr<tls_identity>, std::string>
  from(const tls_files& files);

  virtual ~tls_identity() = default;

  /// Makes the stream of the side that connected. The other side's certificate must be
  /// for `host`, a name or an IP address. If `host` is empty or OpenSSL rejects the
  /// text, the stream's handshake fails.
  /// \param socket non-blocking
  /// \throws std::runtime_error if OpenSSL cannot make the stream
  virtual std::unique_ptr<byte_stream> to_server(socket_descriptor socket,
                                                 const std::string& host) = 0;

  /// Makes the stream of the side that accepted the connection. The other side must
  /// have a certificate of the authority, and the certificate must allow TLS clients.
  /// The stream's shake_hands() throws std::runtime_error if OpenSSL cannot make the
  /// TLS state.
  /// \param socket non-blocking
  virtual std::unique_ptr<byte_stream> to_client(socket_descriptor socket) = 0;
};

} // namespace troupe
