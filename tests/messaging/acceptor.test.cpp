// SPDX-License-Identifier: BSD-3-Clause
// Unknown connections to a node: a client without a correct greeting is not accepted,
// and no client keeps others out.

#include "messaging/links/acceptor.hpp"

#include "tests/messaging/stream_ends.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace troupe::acceptor_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// An acceptor, and the number of accepted connections.
struct door {
  std::atomic<int> guests = 0;
  acceptor takes;

  explicit door(std::chrono::milliseconds patience = 200ms,
                acceptor::stream_maker make = plain_stream)
    : takes(*listen_at({"127.0.0.1", 0}), std::move(make),
            [this](const greeting&, std::unique_ptr<byte_stream>) { ++guests; },
            {.most_waiting = 16, .timeout = patience, .most_handshakes = 4}) {
    // nop
  }

  node_address where() const { return {"127.0.0.1", takes.port()}; }
  socket_descriptor knock() const { return std::move(*connect_to(where(), 5s)); }
};

/// While an object of this class lives, this process may open `count` more descriptors.
class few_descriptors {
public:
  explicit few_descriptors(rlim_t count) {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const socket_descriptor next{dup(STDIN_FILENO)}; // the lowest that is free
    few_.rlim_cur = static_cast<rlim_t>(next.get()) + count;
    few_.rlim_max = before_.rlim_max;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few_) == 0);
  }
  ~few_descriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  few_descriptors(const few_descriptors&) = delete;
  few_descriptors& operator=(const few_descriptors&) = delete;

  int count_of_free() const {
    int result = 0;
    for (int i = 0; i < static_cast<int>(few_.rlim_cur); ++i)
      result += fcntl(i, F_GETFD) < 0 ? 1 : 0;
    return result;
  }

private:
  rlimit before_{}, few_{};
};

bool is_closed(const socket_descriptor& socket) {
  char next = 0;
  return recv(socket.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/// Whether the other side has closed the connection, with or without bytes left to
/// read.
bool hangs_up(const socket_descriptor& socket) {
  pollfd end{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
  return poll(&end, 1, 0) > 0;
}

/// Bytes that a client of TLS sends first.
std::string first_record_of(tls_identity& identity) {
  auto [client, server] = local_sockets();
  const auto stream = identity.to_server(std::move(client), "127.0.0.1");
  REQUIRE(stream->shake_hands().outcome == stream_progress::state::needs_read);
  std::string result(16384, '\0');
  const auto size = recv(server.get(), result.data(), result.size(), 0);
  REQUIRE(size > 0);
  result.resize(static_cast<std::size_t>(size));
  return result;
}

void send(const socket_descriptor& to, const void* bytes, std::size_t size) {
  REQUIRE(write(to.get(), bytes, size) == static_cast<ssize_t>(size));
}

template <class Condition>
bool within(std::chrono::seconds time, const Condition& holds) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!holds() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(1ms);
  return holds();
}

} // namespace

TEST_CASE("who greets comes in, at once or byte by byte", "[links]") {
  door at;
  REQUIRE(connect_and_greet(at.where(), plain_stream, greeting{}, 5s));
  CHECK(within(5s, [&] { return at.guests == 1; }));
  const auto slow = at.knock();
  const greeting hello;
  for (std::size_t i = 0; i < sizeof hello; ++i)
    send(slow, reinterpret_cast<const char*>(&hello) + i, 1);
  CHECK(within(5s, [&] { return at.guests == 2; }));
  CHECK(at.takes.rejected() == 0);
}

TEST_CASE("noise, half a greeting and silence do not come in", "[links]") {
  door at;
  greeting hello;
  std::vector<socket_descriptor> all;
  all.push_back(at.knock());
  send(all.back(), std::string(64, 'x').data(), 64);
  all.push_back(at.knock());
  send(all.back(), &hello, 63);
  all.push_back(at.knock()); // sends nothing
  all.push_back(at.knock());
  ++hello.version;
  send(all.back(), &hello, sizeof hello);
  all.push_back(at.knock());
  hello = {};
  hello.intent = static_cast<greeting::purpose>(9);
  send(all.back(), &hello, sizeof hello);
  all.push_back(at.knock());
  hello = {};
  hello.unused[1] = 1;
  send(all.back(), &hello, sizeof hello);
  CHECK(within(5s, [&] { return at.takes.rejected() == 6; }));
  CHECK(at.guests == 0);
}

TEST_CASE("a thousand who say nothing keep nobody out, and get no place for long",
          "[links]") {
  door at;
  // This process holds both ends: the acceptor and the client need descriptors too.
  rlimit open_files{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &open_files) == 0);
  REQUIRE(open_files.rlim_cur >= 256);
  const auto size = std::min<rlim_t>(1000, open_files.rlim_cur - 128);
  std::vector<socket_descriptor> crowd;
  while (crowd.size() < size) {
    auto one = connect_to(at.where(), 5s);
    REQUIRE(one);
    crowd.push_back(std::move(*one));
  }
  const auto all = static_cast<std::int64_t>(crowd.size());
  CHECK(connect_and_greet(at.where(), plain_stream, greeting{}, 5s));
  CHECK(within(10s, [&] { return at.guests == 1; }));
  CHECK(within(10s, [&] { return at.takes.rejected() == all; }));
}

TEST_CASE("a process without free descriptors closes the oldest stranger", "[links]") {
  door at{10min};
  const few_descriptors few{30};
  std::vector<socket_descriptor> crowd, others;
  for (int i = 0; i < 9; ++i)
    crowd.push_back(at.knock());
  REQUIRE(within(10s, [&] { return few.count_of_free() <= 12; })); // both ends are here
  while (few.count_of_free() > 1)
    others.emplace_back(dup(STDIN_FILENO));
  CHECK(connect_and_greet(at.where(), plain_stream, greeting{}, 5s));
  CHECK(within(10s, [&] { return at.guests == 1; }));
  CHECK(within(10s, [&] { return is_closed(crowd.front()); }));
}

// A whole hello needs TLS state; no client may use up much of that memory.
TEST_CASE("the oldest of too many handshakes goes, and a guest comes in", "[links]") {
  const test_authority authority;
  const auto identity = authority.identity("127.0.0.1");
  door at{10min,
          [&](socket_descriptor s) { return identity->to_client(std::move(s)); }};
  const auto hello = first_record_of(*identity);
  std::vector<socket_descriptor> crowd; // each sends a hello, and nothing more
  for (int i = 0; i < 10; ++i) {
    crowd.push_back(at.knock());
    send(crowd.back(), hello.data(), hello.size());
  }
  CHECK(within(10s, [&] { return at.takes.rejected() == 6; }));
  const auto is_left = [](const socket_descriptor& one) { return !hangs_up(one); };
  CHECK(std::ranges::find_if(crowd, is_left) - crowd.begin() == 6);
  CHECK(std::ranges::count_if(crowd, is_left) == 4);
  const auto to_door = [&](socket_descriptor s) {
    return identity->to_server(std::move(s), "127.0.0.1");
  };
  CHECK(connect_and_greet(at.where(), to_door, greeting{}, 5s));
  CHECK(within(10s, [&] { return at.guests == 1; }));
}

TEST_CASE("as many more handshakes go on as guests are expected", "[links]") {
  const test_authority authority;
  const auto identity = authority.identity("127.0.0.1");
  door at{10min,
          [&](socket_descriptor s) { return identity->to_client(std::move(s)); }};
  at.takes.expect(15);
  const auto hello = first_record_of(*identity);
  std::vector<socket_descriptor> crowd; // each sends a hello, and nothing more
  for (int i = 0; i < 4 + 15 + 1; ++i) {
    crowd.push_back(at.knock());
    send(crowd.back(), hello.data(), hello.size());
  }
  CHECK(within(10s, [&] { return at.takes.rejected() == 1; }));
  CHECK(std::ranges::count_if(crowd, hangs_up) == 1);
  CHECK(hangs_up(crowd.front()));
}

TEST_CASE("addresses are read as they are meant, and others refused", "[links]") {
  CHECK(*parse_address("a:4242") == node_address{"a", 4242});
  CHECK(*parse_address("[::1]:1") == node_address{"::1", 1});
  CHECK(to_string(node_address{"::1", 1}) == "[::1]:1");
  for (const auto* wrong : {"", ":", "a", "a:", ":1", "a:65536", "a:-1", "a:1x",
                            "::1:4", "[]:1", "a:b:1", "a: 1"})
    CHECK_FALSE(parse_address(wrong));
  CHECK(*is_loopback({"127.0.0.1", 1}));
  CHECK(*is_loopback({"::1", 1}));
  CHECK_FALSE(*is_loopback({"0.0.0.0", 1}));
  CHECK_FALSE(*is_loopback({"10.0.0.1", 1}));
}

TEST_CASE("who cannot be reached is named", "[links]") {
  const auto none = connect_to({"127.0.0.1", 1}, 1s);
  REQUIRE_FALSE(none);
  CHECK_THAT(none.error(), ContainsSubstring("127.0.0.1:1"));
  const auto nowhere = connect_to({"no-such-host.invalid", 1}, 1s);
  REQUIRE_FALSE(nowhere);
  CHECK_THAT(nowhere.error(), ContainsSubstring("no machine is known by that name"));
}

} // namespace troupe::acceptor_test
