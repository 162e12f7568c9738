// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/connector.hpp"
#include "messaging/links/node_address.hpp"
#include "messaging/links/tls.hpp"
#include "messaging/links/tunnels.hpp"

#include <tl/expected.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Makes the connections of this process with other processes, without encryption or by
/// TLS.
class node_links : public connector {
public:
  /// Makes the object. The error is one sentence: a mistake in the files of `tls`, or
  /// too little free memory or too few free threads for CAF.
  /// \param tls absent: connections are not encrypted
  static tl::expected<std::unique_ptr<node_links>, std::string>
  from(const std::optional<tls_files>& tls);

  bool encrypts() const override { return identity_ != nullptr; }
  std::unique_ptr<byte_stream> to(socket_descriptor socket,
                                  const std::string& host) override;
  /// Returns the stream of a connection that this process has accepted.
  std::unique_ptr<byte_stream> from(socket_descriptor socket);
  std::shared_ptr<control_line> line(std::unique_ptr<byte_stream> stream,
                                     control_listener listener) override;

private:
  explicit node_links(std::shared_ptr<tls_identity> identity);

  std::shared_ptr<tls_identity> identity_; // null: no encryption
  std::unique_ptr<tunnels> tunnels_;       // null: no encryption
  control_lines lines_;
};

/// Parses the addresses of nodes. The error is one sentence: an address that is wrong,
/// named twice, or must not be used without TLS (plaintext_error()).
tl::expected<std::vector<node_address>, std::string>
parse_nodes(const std::vector<std::string>& addresses, bool has_tls, bool insecure);

/// One sentence if an address must not be used without TLS, else an empty text. An
/// address needs no TLS if only this machine reaches the address, or if the user allows
/// insecure connections. With TLS every address is allowed. An unknown host is an error
/// too, unless the user has TLS or allows insecure connections.
std::string plaintext_error(const node_address& a, bool has_tls, bool insecure);

} // namespace troupe
