// SPDX-License-Identifier: BSD-3-Clause
// An HTTP client of sockets and bytes, as browsers and others on this machine use HTTP.

#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

/// A connection to a port of this machine.
class client {
public:
  explicit client(int port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~client() { close(socket_); }
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  bool connected() const { return connected_; }
  void say(const std::string& bytes) const {
    (void)!::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Returns all bytes received until the other side closes the connection.
  std::string hear() const {
    std::string all;
    char some[1U << 16U];
    for (ssize_t count = 0; (count = recv(socket_, some, sizeof some, 0)) > 0;)
      all.append(some, static_cast<std::size_t>(count));
    return all;
  }
  /// Whether the other side has closed the connection, and nothing is left to read.
  bool is_closed() const {
    char next = 0;
    const auto count = recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  }
  /// Shrinks the receive window to a few kB, so that the server's answers pile up.
  void listen_badly() const {
    const int little = 4096;
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  }

private:
  int socket_;
  bool connected_ = false;
};

inline std::string answer(int port, const std::string& request) {
  const client one{port};
  one.say(request);
  return one.hear();
}

inline std::string get(int port, const std::string& path) {
  return answer(port, "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:"
                        + std::to_string(port) + "\r\n\r\n");
}

inline std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

inline int port_in(const std::string& text) {
  const std::string before = "http://127.0.0.1:";
  const auto at = text.find(before);
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + before.size()));
}
