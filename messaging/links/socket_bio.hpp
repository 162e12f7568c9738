// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/openssl_pointers.hpp"

#include <cstddef>
#include <vector>

namespace troupe {

/// The socket that OpenSSL uses, with the result of the last system call. An error of
/// OpenSSL does not include the system's error.
struct bio_socket {
  int fd = -1;
  /// errno of the last call; 0 if the call succeeded, or could move no bytes yet.
  int error = 0;
  bool ended = false; ///< The other side has ended the stream.

  /// Bytes that were received before this BIO existed. OpenSSL's reads return these
  /// bytes first.
  std::vector<char> early = {};
  std::size_t early_read = 0; ///< Bytes of `early` that were read.

  /// Bytes that OpenSSL has written and that wait for the next flush. Several records
  /// share one system call: a call costs about as much as encrypting half a record.
  std::vector<char> waiting = {};
  std::size_t gone = 0; ///< Bytes of `waiting` that were sent.
};

/// Sends waiting bytes until the socket takes no more. Returns true if all bytes were
/// sent. After false, `error` is the reason, or 0 if the socket takes no more bytes
/// now.
bool flush(bio_socket& socket);

/// Returns a BIO over a non-blocking socket; null if OpenSSL cannot make the BIO.
/// OpenSSL's own BIO writes with write(2), and a write to a closed socket would raise a
/// signal that ends the process. This BIO raises no signals.
/// \param socket outlives the BIO and stays open
bio_pointer socket_bio(bio_socket& socket);

} // namespace troupe
