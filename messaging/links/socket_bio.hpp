#pragma once

#include "messaging/links/openssl_pointers.hpp"

namespace troupe {

/// A socket as OpenSSL uses it, and how its last call went: an error of OpenSSL does
/// not say which error of the system it was.
struct bio_socket {
  int fd = -1;
  int error = 0; ///< errno; 0 if the last call did not fail, or only found nothing.
  bool ended = false; ///< The other side has.
};

/// A BIO over a non-blocking socket. OpenSSL's own writes with write(2), and a write to
/// a closed socket would be a signal that ends the process; this one sends no signals.
/// \param socket outlives the BIO and stays open
bio_pointer socket_bio(bio_socket& socket);

} // namespace troupe
