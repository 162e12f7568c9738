// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/openssl_pointers.hpp"

#include <cstddef>
#include <vector>

namespace troupe {

/// A socket as OpenSSL uses it, and how its last call went: an error of OpenSSL does
/// not say which error of the system it was.
struct bio_socket {
  int fd = -1;
  int error = 0; ///< errno; 0 if the last call did not fail, or only found nothing.
  bool ended = false; ///< The other side has.

  // Bytes that were received before OpenSSL reads: its reads return these first.
  std::vector<char> early = {};
  std::size_t early_read = 0; ///< Of those.

  // What OpenSSL has written waits here until it is flushed: records are small, and a
  // call of the system costs as much as half a record's sum.
  std::vector<char> waiting = {};
  std::size_t gone = 0; ///< Of those.
};

/// Sends what waits, as far as the socket takes it. Returns whether all has gone; if
/// not, `error` says why, or the socket takes no more now.
bool flush(bio_socket& socket);

/// A BIO over a non-blocking socket. OpenSSL's own writes with write(2), and a write to
/// a closed socket would be a signal that ends the process; this one sends no signals.
/// \param socket outlives the BIO and stays open
bio_pointer socket_bio(bio_socket& socket);

} // namespace troupe
