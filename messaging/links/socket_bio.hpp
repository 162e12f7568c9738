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
  int error = 0;      ///< errno; 0: no failure, or no bytes to move now.
  bool ended = false; ///< The other side has ended the stream.

  // Bytes that were received before OpenSSL reads. OpenSSL's reads return these bytes
  // first.
  std::vector<char> early = {};
  std::size_t early_read = 0; ///< Bytes of `early` that were read.

  // Bytes that OpenSSL has written wait here until the next flush. Records are small,
  // and a system call costs as much as half a record's sum.
  std::vector<char> waiting = {};
  std::size_t gone = 0; ///< Bytes of `waiting` that were sent.
};

/// Sends waiting bytes, as many as the socket takes. Returns whether all bytes were
/// sent. Otherwise `error` has the reason, or the socket takes no more bytes now.
bool flush(bio_socket& socket);

/// A BIO over a non-blocking socket. OpenSSL's own BIO writes with write(2), and a
/// write to a closed socket would raise a signal that ends the process. This BIO raises
/// no signals.
/// \param socket outlives the BIO and stays open
bio_pointer socket_bio(bio_socket& socket);

} // namespace troupe
