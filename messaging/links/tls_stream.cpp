// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/tls_stream.hpp"

#include "messaging/links/socket_bio.hpp"
#include "messaging/links/tls_refusals.hpp"

#include <openssl/err.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

using state = stream_progress::state;

constexpr const char* cut_off = "the connection was cut off";

/// The most content bytes of a TLS record.
constexpr std::size_t record_bytes = 16384;

/// A key of AES-GCM is good for 2^24.5 records (RFC 8446, 5.5), which is 380 GB; a long
/// training sends more. A new key costs almost no time.
constexpr std::size_t bytes_of_a_key = std::size_t{1} << 28;

/// The most encrypted bytes that wait for a system call.
constexpr std::size_t most_waiting = std::size_t{1} << 18;

class tls_byte_stream : public byte_stream {
public:
  tls_byte_stream(ssl_pointer tls, socket_descriptor socket, const std::string& host,
                  std::vector<char> received)
    : socket_(std::move(socket)),
      system_{.fd = socket_.get(), .early = std::move(received)},
      host_(host),
      tls_(std::move(tls)) {
    auto bio = socket_bio(system_);
    if (!bio)
      throw std::runtime_error("OpenSSL made no BIO");
    auto* const shared_bio = bio.release(); // tls_ is the only owner
    SSL_set_bio(tls_.get(), shared_bio, shared_bio);
  }

  // system_'s address must not change
  tls_byte_stream(const tls_byte_stream&) = delete;
  tls_byte_stream& operator=(const tls_byte_stream&) = delete;

  ~tls_byte_stream() override {
    ERR_clear_error();
    if (accepted_ && failure_.empty())
      SSL_shutdown(tls_.get()); // sends the closing alert, as far as possible
    ERR_clear_error();
  }

  stream_progress shake_hands() override {
    if (end_)
      return *end_;
    ERR_clear_error();
    if (!SSL_is_init_finished(tls_.get()))
      if (const auto result = SSL_do_handshake(tls_.get()); result != 1)
        return progress_of(result, end_);
    std::size_t count = 0;
    const bool server = SSL_is_server(tls_.get()) == 1;
    if (server && !has_greeted_) {
      if (const auto result = SSL_write_ex(tls_.get(), "", 1, &count); result != 1)
        return progress_of(result, end_);
      has_greeted_ = true;
    }
    if (server && !flush(system_))
      return not_flushed(end_);
    char first = 0;
    if (!server)
      if (const auto result = SSL_read_ex(tls_.get(), &first, 1, &count); result != 1)
        return progress_of(result, end_);
    accepted_ = true;
    has_more_ = SSL_has_pending(tls_.get()) > 0;
    return {state::moved};
  }

  stream_progress read(std::span<std::byte> to) override {
    std::size_t total = 0;
    while (total < to.size() && !end_) {
      std::size_t count = 0;
      ERR_clear_error();
      const auto result =
        SSL_read_ex(tls_.get(), to.data() + total, to.size() - total, &count);
      total += count;
      if (result == 1)
        continue;
      const auto progress = progress_of(result, end_);
      has_more_ = total > 0 && end_; // poll() may not report the end again
      return total > 0 ? stream_progress{state::moved, total} : progress;
    }
    if (end_ && total == 0) {
      has_more_ = false;
      return *end_;
    }
    has_more_ = SSL_has_pending(tls_.get()) > 0;
    return {state::moved, total};
  }

  // Reports only bytes that the socket has taken as moved. Bytes that are encrypted but
  // not sent come again with the next write, which skips these bytes.
  stream_progress write(std::span<const iovec> parts) override {
    if (end_ || write_end_)
      return end_ ? *end_ : *write_end_;
    std::size_t total = 0;
    byte_cursor cursor{parts};
    cursor.skip(waiting_);
    std::optional<stream_progress> stopped;
    do {
      stopped = encrypt(cursor);
      if (!flush(system_)) {
        stopped = not_flushed(write_end_);
        break;
      }
      total += std::exchange(waiting_, 0);
    } while (!stopped && !cursor.is_end());
    return total > 0 || !stopped ? stream_progress{state::moved, total} : *stopped;
  }

  bool has_more() const override { return has_more_; }

  bool has_handshake() const override { return !accepted_; }

  const std::string& failure() const override { return failure_; }

  int socket() const override { return socket_.get(); }

private:
  /// A position in a list of parts, in bytes.
  struct byte_cursor {
    std::span<const iovec> parts;
    std::size_t offset = 0; ///< Within the first part.

    bool is_end() {
      skip(0);
      return parts.empty();
    }

    void skip(std::size_t count) {
      for (offset += count; !parts.empty() && offset >= parts.front().iov_len;
           parts = parts.subspan(1))
        offset -= parts.front().iov_len;
    }

    std::span<const char> bytes() const {
      return {static_cast<const char*>(parts.front().iov_base) + offset,
              parts.front().iov_len - offset};
    }
  };

  /// Encrypts bytes from the cursor on, as many as there is space for. Returns the
  /// reason if OpenSSL took no more bytes.
  std::optional<stream_progress> encrypt(byte_cursor& cursor) {
    while (system_.waiting.size() < most_waiting) {
      const auto record = next_record(cursor);
      if (record.empty())
        break;
      std::size_t count = 0;
      ERR_clear_error();
      if (const auto result =
            SSL_write_ex(tls_.get(), record.data(), record.size(), &count);
          result != 1) {
        pending_record_ = record.size();
        return progress_of(result, write_end_);
      }
      pending_record_ = 0;
      waiting_ += count;
      cursor.skip(count);
      change_key_after(count);
    }
    return {};
  }

  /// The bytes from the cursor on that make a record; empty at the end. Small parts are
  /// joined. A record that OpenSSL has begun to write is repeated unchanged.
  std::span<const char> next_record(byte_cursor cursor) {
    const auto size = pending_record_ > 0 ? pending_record_ : record_bytes;
    cursor.skip(0);
    if (cursor.parts.empty())
      return {};
    if (const auto bytes = cursor.bytes();
        bytes.size() >= size || cursor.parts.size() == 1)
      return bytes.first(checked(std::min(bytes.size(), size)));
    block_.resize(record_bytes);
    std::size_t filled = 0;
    for (; filled < size && !cursor.parts.empty(); cursor.skip(0)) {
      const auto bytes = cursor.bytes();
      const auto count = std::min(bytes.size(), size - filled);
      std::memcpy(block_.data() + filled, bytes.data(), count);
      filled += count;
      cursor.skip(count);
    }
    return {block_.data(), checked(filled)};
  }

  std::size_t checked(std::size_t size) const {
    if (pending_record_ > 0 && size != pending_record_)
      throw std::logic_error(
        "a write did not begin with the bytes that the last write left");
    return size;
  }

  void change_key_after(std::size_t written) {
    with_this_key_ += written;
    if (with_this_key_ < bytes_of_a_key)
      return;
    with_this_key_ = 0;
    // the next write changes the key
    SSL_key_update(tls_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
  }

  using ending = std::optional<stream_progress>;

  /// The reason why a call of OpenSSL has failed. \param end receives the reason, if
  /// the stream has ended
  stream_progress progress_of(int result, ending& end) {
    switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {state::needs_read};
    case SSL_ERROR_WANT_WRITE:
      return {state::needs_write};
    case SSL_ERROR_ZERO_RETURN:
      end = closed("");
      break;
    case SSL_ERROR_SYSCALL:
      // OpenSSL before 3.2 does not report that a flush of its own, as for a new key,
      // must be repeated.
      if (system_.error == 0 && SSL_want_write(tls_.get()))
        return {state::needs_write};
      end = system_.error != 0 && (accepted_ || system_.error != ECONNRESET)
              ? failed(std::system_category().message(system_.error))
              : closed(cut_off);
      break;
    default:
      end = refused(ERR_peek_last_error());
    }
    return *end;
  }

  stream_progress not_flushed(ending& end) {
    if (system_.error == 0)
      return {state::needs_write};
    end = failed(std::system_category().message(system_.error));
    return *end;
  }

  stream_progress refused(unsigned long error) {
    if (is_cut_off(error))
      return closed(cut_off);
    if (is_about_certificate(error))
      return failed(certificate_refusal(tls_.get(), host_));
    return failed(handshake_refusal(tls_.get(), error));
  }

  stream_progress closed(const std::string& why) {
    if (!accepted_)
      return failed(
        std::string{"it has closed the connection during the handshake"}
        + (SSL_is_server(tls_.get()) != 0 ? "" : "; a node without --tls does so"));
    if (!why.empty())
      failure_ = why;
    return {state::closed};
  }

  stream_progress failed(const std::string& why) {
    failure_ = why;
    return {state::failed};
  }

  socket_descriptor socket_;
  bio_socket system_;
  std::string host_;
  ssl_pointer tls_;         // uses system_
  std::vector<char> block_; // a record joined from small parts
  std::size_t waiting_ = 0; // bytes that are encrypted but not all sent
  std::size_t pending_record_ =
    0; // of a record that OpenSSL could not write completely
  std::size_t with_this_key_ = 0;
  bool has_greeted_ = false;
  bool accepted_ = false; // by both sides
  bool has_more_ = false;
  ending end_;
  ending write_end_; // bytes that the other side sent before can still be read
  std::string failure_;
};

} // namespace

std::unique_ptr<byte_stream> tls_stream(ssl_pointer tls, socket_descriptor socket,
                                        const std::string& host,
                                        std::vector<char> received) {
  return std::make_unique<tls_byte_stream>(std::move(tls), std::move(socket), host,
                                           std::move(received));
}

} // namespace troupe
