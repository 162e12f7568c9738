// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/connector.hpp"
#include "experiments/options/node_options.hpp"
#include "messaging/links/tunnels.hpp"

#include <tl/expected.hpp>

#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// How this process reaches others, and is reached: in plain, or by TLS. One for a
/// whole program.
class node_links : public connector {
public:
  /// On error says what is wrong with the files.
  static tl::expected<std::unique_ptr<node_links>, std::string>
  from(const std::optional<tls_files>& tls);

  bool encrypts() const override { return identity_ != nullptr; }
  std::unique_ptr<byte_stream> to(socket_descriptor socket,
                                  const std::string& host) override;
  std::unique_ptr<byte_stream> from(socket_descriptor socket);
  std::shared_ptr<control_line> line(std::unique_ptr<byte_stream> stream,
                                     control_listener listener) override;

private:
  explicit node_links(std::shared_ptr<tls_identity> identity);

  std::shared_ptr<tls_identity> identity_; // null: in plain
  std::unique_ptr<tunnels> tunnels_;       // likewise
  control_lines lines_;
};

/// Of troupe.
std::string version();

} // namespace troupe
