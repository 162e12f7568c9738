// SPDX-License-Identifier: BSD-3-Clause
// The side of TLS that waits for unknown clients. Until a whole record of a handshake
// has arrived, a connection costs only a socket and the received bytes.

#include "messaging/links/tls_stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {

namespace {

using state = stream_progress::state;

constexpr std::size_t header_bytes = 5; // of a record: type, version (2), length (2)
constexpr unsigned char handshake_type = 22;
constexpr std::size_t most_content = 16384;

/// A record of TLS 1.2 and later: a fatal alert about the protocol's version.
constexpr std::array<unsigned char, 7> tls_alert{21, 3, 3, 0, 2, 2, 70};

/// The number of bytes in a connection's first record, as far as `received` shows.
/// Bytes that are no record of a handshake end with the header: OpenSSL then reports
/// the error.
std::size_t bytes_of_record(const std::vector<char>& received) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(received[i]);
  };
  if (received.size() < header_bytes || byte(0) != handshake_type)
    return header_bytes;
  const auto content = std::size_t{byte(3)} << 8U | byte(4);
  return header_bytes + (content <= most_content ? content : 0);
}

class waiting_tls_stream : public byte_stream {
public:
  waiting_tls_stream(tls_maker make, socket_descriptor socket)
    : make_(std::move(make)), stream_(plain_stream(std::move(socket))) {
    // nop
  }

  stream_progress shake_hands() override {
    if (make_) {
      if (const auto p = receive_record(); p.outcome != state::moved)
        return p;
      refuse_plain();
      stream_ = tls_stream(std::exchange(make_, nullptr)(), stream_->take_socket(), "",
                           std::exchange(received_, {}));
    }
    return stream_->shake_hands();
  }

  stream_progress read(std::span<std::byte> to) override { return stream_->read(to); }
  stream_progress write(std::span<const iovec> parts) override {
    return stream_->write(parts);
  }
  bool has_more() const override { return stream_->has_more(); }
  bool has_handshake() const override { return stream_->has_handshake(); }
  const std::string& failure() const override {
    return failure_.empty() ? stream_->failure() : failure_;
  }
  int socket() const override { return stream_->socket(); }

private:
  /// Receives the rest of the first record; `moved` when the record is complete.
  stream_progress receive_record() {
    std::array<std::byte, 1024> block;
    for (;;) {
      const auto missing = bytes_of_record(received_) - received_.size();
      if (missing == 0)
        return {state::moved};
      const auto moved =
        stream_->read(std::span{block}.first(std::min(missing, block.size())));
      if (moved.outcome == state::closed) {
        failure_ = "it has closed the connection during the handshake";
        return {state::failed};
      }
      if (moved.outcome != state::moved)
        return moved;
      const auto* const first = reinterpret_cast<const char*>(block.data());
      received_.insert(received_.end(), first, first + moved.bytes);
    }
  }

  /// Answers bytes that are no handshake with an alert, so that a client without TLS
  /// can report that this side expects TLS. Also reads the rest of the client's
  /// greeting: a socket that is closed with unread bytes may lose the alert.
  void refuse_plain() {
    if (static_cast<unsigned char>(received_[0]) == handshake_type)
      return;
    auto alert = tls_alert;
    const iovec bytes{alert.data(), alert.size()};
    (void)stream_->write({&bytes, 1});
    std::array<std::byte, 1024> rest;
    (void)stream_->read(rest);
  }

  tls_maker make_;                      // empty: the TLS state exists
  std::unique_ptr<byte_stream> stream_; // plain until then
  std::vector<char> received_;
  std::string failure_;
};

} // namespace

std::unique_ptr<byte_stream> tls_server_stream(tls_maker make,
                                               socket_descriptor socket) {
  return std::make_unique<waiting_tls_stream>(std::move(make), std::move(socket));
}

} // namespace troupe
