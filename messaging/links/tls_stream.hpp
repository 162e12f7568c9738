// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/openssl_pointers.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// A stream of TLS. A handshake is over when both sides have accepted the other's
/// certificate: with TLS 1.3 alone the side that connects would not know, so that the
/// other one sends a byte first.
/// \param tls knows its side and what it asks of the other's certificate
/// \param host for sentences: the name that the other's certificate is to have
/// \param received bytes that the socket has given already
std::unique_ptr<byte_stream> tls_stream(ssl_pointer tls, socket_descriptor socket,
                                        const std::string& host,
                                        std::vector<char> received = {});

/// Makes the TLS state of a connection. \throws std::runtime_error
using tls_maker = std::function<ssl_pointer()>;

/// A stream of TLS that waits for a client. It makes TLS state when the client's first
/// record is complete; before that it holds the bytes received.
std::unique_ptr<byte_stream> tls_server_stream(tls_maker make,
                                               socket_descriptor socket);

} // namespace troupe
