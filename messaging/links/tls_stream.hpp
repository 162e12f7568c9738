#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/openssl_pointers.hpp"

#include <memory>
#include <string>

namespace troupe {

/// A stream of TLS. A handshake is over when both sides have accepted the other's
/// certificate: with TLS 1.3 alone the side that connects would not know, so that the
/// other one sends a byte first.
/// \param tls knows its side and what it asks of the other's certificate
/// \param host for sentences: the name that the other's certificate is to have
std::unique_ptr<byte_stream> tls_stream(ssl_pointer tls, socket_descriptor socket,
                                        const std::string& host);

} // namespace troupe
