// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/byte_stream.hpp"

#include <climits>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace troupe {

namespace {

using state = stream_progress::state;

class plain_byte_stream : public byte_stream {
public:
  explicit plain_byte_stream(socket_descriptor socket) : socket_(std::move(socket)) {
    // nop
  }

  stream_progress shake_hands() override { return {state::moved}; }

  stream_progress read(std::span<std::byte> to) override {
    if (to.empty())
      return {state::moved};
    const auto count =
      retried([&] { return ::recv(socket_.get(), to.data(), to.size(), 0); });
    if (count == 0)
      return {state::closed};
    return progress_of(count, state::needs_read);
  }

  stream_progress write(std::span<const iovec> parts) override {
    msghdr header{};
    header.msg_iov = const_cast<iovec*>(parts.data()); // sendmsg only reads the parts
    header.msg_iovlen = std::min(parts.size(), std::size_t{IOV_MAX});
    return progress_of(
      retried([&] { return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL); }),
      state::needs_write);
  }

  const std::string& failure() const override { return failure_; }

  int socket() const override { return socket_.get(); }

  socket_descriptor take_socket() override { return std::move(socket_); }

private:
  /// Repeats a call that a signal has interrupted.
  template <class Call>
  static ssize_t retried(Call call) {
    for (;;)
      if (const auto count = call(); count >= 0 || errno != EINTR)
        return count;
  }

  stream_progress progress_of(ssize_t count, state when_blocked) {
    if (count >= 0)
      return {state::moved, static_cast<std::size_t>(count)};
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      return {when_blocked};
    failure_ = std::system_category().message(errno);
    return {state::failed};
  }

  socket_descriptor socket_;
  std::string failure_;
};

} // namespace

socket_descriptor::~socket_descriptor() {
  if (fd_ >= 0)
    ::close(fd_);
}

std::unique_ptr<byte_stream> plain_stream(socket_descriptor socket) {
  return std::make_unique<plain_byte_stream>(std::move(socket));
}

} // namespace troupe
