// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/openssl_pointers.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// Returns a stream of TLS. A handshake is complete when each side has accepted the
/// other side's certificate. With TLS 1.3 alone, the connecting side would not know
/// whether the other side has accepted. So the side that waited for the connection
/// sends one byte first.
/// \param tls configured for one side, with the rules for the other side's certificate
/// \param host for error messages: the required name in the other side's certificate
/// \param received bytes that were already read from the socket
/// \throws std::runtime_error if OpenSSL cannot use the socket
std::unique_ptr<byte_stream> tls_stream(ssl_pointer tls, socket_descriptor socket,
                                        const std::string& host,
                                        std::vector<char> received = {});

/// Makes the TLS state of a connection.
/// \throws std::runtime_error if OpenSSL cannot make the state
using tls_maker = std::function<ssl_pointer()>;

/// Returns a stream of TLS for the side that waits for a client. The stream makes the
/// TLS state when the client's first record is complete. Before that, the stream holds
/// only the received bytes. shake_hands() throws the exceptions of `make`.
std::unique_ptr<byte_stream> tls_server_stream(tls_maker make,
                                               socket_descriptor socket);

} // namespace troupe
