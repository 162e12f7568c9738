// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/certificates.hpp"
#include "messaging/links/tls.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace troupe {

// Both ends of a stream in one thread, driven by poll as in a program.

struct socket_pair {
  socket_descriptor client;
  socket_descriptor server;
};

inline socket_pair local_sockets() {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds)
          == 0);
  return {socket_descriptor{fds[0]}, socket_descriptor{fds[1]}};
}

inline socket_pair tcp_sockets() {
  const socket_descriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in where{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  auto* const address = reinterpret_cast<sockaddr*>(&where);
  socklen_t size = sizeof where;
  REQUIRE(::bind(listener.get(), address, size) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), address, &size) == 0);
  socket_descriptor client{
    ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  ::connect(client.get(), address, size); // continues by itself
  socket_descriptor server{
    ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
  REQUIRE(server);
  return {std::move(client), std::move(server)};
}

/// An authority and hosts with certificates of that authority, in files.
class test_authority {
public:
  tls_files files(const std::string& name, const validity& when = validity::of_days(1),
                  certificate_use use = certificate_use::server_and_client) const {
    return written(*make_certificate(pair_, name, when, use));
  }

  tls_files written(const certificate_pair& pair) const {
    const tls_files result{folder_.write("host.crt", pair.certificate),
                           folder_.write("host.key", pair.key),
                           folder_.write("authority.crt", pair_.certificate)};
    std::filesystem::permissions(result.key, std::filesystem::perms{0600});
    return result;
  }

  std::shared_ptr<tls_identity> identity(const std::string& name) const {
    return tls_identity::from(files(name)).value();
  }

  const certificate_pair& pair() const { return pair_; }

private:
  temporary_folder folder_;
  certificate_pair pair_ = make_authority(validity::of_days(1));
};

struct stream_ends {
  std::unique_ptr<byte_stream> client;
  std::unique_ptr<byte_stream> server;
};

/// Waits until an end can do its next step; if none can, the test fails.
inline void wait_for(std::array<pollfd, 2> ends) {
  REQUIRE(::poll(ends.data(), ends.size(), 10000) > 0);
}

inline short events_of(stream_progress waits) {
  return waits.outcome == stream_progress::state::needs_write ? POLLOUT : POLLIN;
}

struct handshake_end {
  stream_progress progress{stream_progress::state::needs_read};
  std::string why;

  bool is_over() const {
    return progress.outcome != stream_progress::state::needs_read
           && progress.outcome != stream_progress::state::needs_write;
  }
  bool is_good() const { return progress.outcome == stream_progress::state::moved; }
};

struct handshake_ends {
  handshake_end client;
  handshake_end server;

  bool are_good() const { return client.is_good() && server.is_good(); }
};

/// Runs both handshakes to the end; an end that fails is closed.
inline handshake_ends shake_hands(stream_ends& ends) {
  handshake_ends result;
  const auto go_on = [](std::unique_ptr<byte_stream>& stream, handshake_end& end) {
    if (end.is_over())
      return pollfd{-1, 0, 0};
    end.progress = stream->shake_hands();
    pollfd waits{stream->socket(), events_of(end.progress), 0};
    if (!end.is_over())
      return waits;
    end.why = stream->failure();
    if (!end.is_good())
      stream.reset();
    return pollfd{-1, 0, 0};
  };
  for (;;) {
    const std::array both{go_on(ends.client, result.client),
                          go_on(ends.server, result.server)};
    if (result.client.is_over() && result.server.is_over())
      return result;
    if (both[0].fd >= 0 && both[1].fd >= 0) {
      wait_for(both);
    } else {
      const auto& one = both[0].fd >= 0 ? both[0] : both[1];
      wait_for({one, pollfd{-1, 0, 0}});
    }
  }
}

} // namespace troupe
