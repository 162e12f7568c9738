// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"

#include <tl/expected.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace troupe {

/// Where a process has its certificate, that one's private key, and the certificate of
/// the authority that all of its cluster trust; PEM files.
struct tls_files {
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::filesystem::path authority;
};

/// What makes streams of TLS 1.3 on both sides of which are certificates of one
/// authority. May be used by several threads.
class tls_identity {
public:
  /// On error says which file is missing, unreadable, or not what it should be.
  static tl::expected<std::shared_ptr<tls_identity>, std::string>
  from(const tls_files& files);

  virtual ~tls_identity() = default;

  /// The side that connected: the other's certificate must be for `host`, a name or an
  /// IP address. \param socket non-blocking
  virtual std::unique_ptr<byte_stream> to_server(socket_descriptor socket,
                                                 const std::string& host) = 0;

  /// The side that was connected to: the other must have a certificate of the
  /// authority, which allows TLS clients.
  virtual std::unique_ptr<byte_stream> to_client(socket_descriptor socket) = 0;
};

} // namespace troupe
