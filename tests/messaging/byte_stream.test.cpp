// SPDX-License-Identifier: BSD-3-Clause
// Behavior that streams of both kinds share: plain streams and TLS.

#include "messaging/links/byte_stream.hpp"

#include "tests/messaging/stream_ends.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <random>
#include <vector>

namespace troupe::byte_stream_test {

using state = stream_progress::state;

namespace {

using random_numbers = std::mt19937;

std::size_t up_to(random_numbers& random, std::size_t most) {
  return std::uniform_int_distribution<std::size_t>{0, most}(random);
}

std::vector<char> random_bytes(std::size_t count, unsigned seed) {
  random_numbers random{seed};
  std::vector<char> result(count);
  for (auto& b : result)
    b = static_cast<char>(random());
  return result;
}

/// Cuts bytes into parts of any size, including empty parts.
std::vector<iovec> cut(std::span<char> bytes, random_numbers& random) {
  std::vector<iovec> result;
  while (!bytes.empty()) {
    const auto size = std::min(
      bytes.size(),
      up_to(random, std::vector<std::size_t>{0, 40, 3000, 70000}[random() % 4]));
    result.push_back({bytes.data(), size});
    bytes = bytes.subspan(size);
  }
  return result;
}

/// One end: sends all of `out` in steps of any size, and keeps all received bytes.
struct end_at_work {
  byte_stream& stream;
  std::vector<char> out;
  std::size_t expected;
  random_numbers random;
  std::vector<char> in = {};
  std::size_t sent = 0;
  std::size_t offered = 0; // bytes that a write did not accept
  bool blocked = false;

  void send() {
    const auto left = out.size() - sent;
    offered = std::min(left, std::max(offered, up_to(random, 200000)));
    const auto progress =
      stream.write(cut(std::span{out}.subspan(sent, offered), random));
    REQUIRE(
      (progress.outcome == state::moved || progress.outcome == state::needs_write));
    blocked = progress.outcome == state::needs_write;
    sent += progress.bytes;
    offered -= progress.bytes;
  }

  void receive() {
    std::vector<std::byte> room(1 + up_to(random, 100000));
    const auto progress = stream.read(room);
    REQUIRE(
      (progress.outcome == state::moved || progress.outcome == state::needs_read));
    for (std::size_t i = 0; i < progress.bytes; ++i)
      in.push_back(static_cast<char>(room[i]));
  }

  bool is_over() const { return sent == out.size() && in.size() == expected; }

  pollfd waits() const {
    const int out_event = sent < out.size() ? POLLOUT : 0;
    return {stream.socket(), static_cast<short>(POLLIN | out_event), 0};
  }

  void go_on() {
    if (sent < out.size())
      send();
    receive();
  }
};

void move_both_ways(stream_ends& ends, std::size_t bytes, unsigned seed) {
  end_at_work client{*ends.client, random_bytes(bytes, seed), bytes / 2,
                     random_numbers{seed}};
  end_at_work server{*ends.server, random_bytes(bytes / 2, seed + 1), bytes,
                     random_numbers{seed + 1}};
  while (!client.is_over() || !server.is_over()) {
    client.go_on();
    server.go_on();
    const bool at_once = client.stream.has_more() || server.stream.has_more();
    if (!at_once && (!client.is_over() || !server.is_over()))
      wait_for({client.waits(), server.waits()});
  }
  CHECK((client.in == server.out));
  CHECK((server.in == client.out));
}

enum class kind { plain, tls };

stream_ends ends_of(kind what, socket_pair sockets) {
  if (what == kind::plain)
    return {plain_stream(std::move(sockets.client)),
            plain_stream(std::move(sockets.server))};
  const test_authority authority;
  return {authority.identity("a")->to_server(std::move(sockets.client), "b"),
          authority.identity("b")->to_client(std::move(sockets.server))};
}

stream_progress write_text(byte_stream& to, std::string text) {
  return to.write(std::vector<iovec>{{text.data(), text.size()}});
}

} // namespace

TEST_CASE("streams bring what was written, in order, both ways at once", "[links]") {
  const auto what = GENERATE(kind::plain, kind::tls);
  const bool tcp = GENERATE(false, true);
  const unsigned seed = GENERATE(1U, 2U);
  auto ends = ends_of(what, tcp ? tcp_sockets() : local_sockets());
  REQUIRE(shake_hands(ends).are_good());
  move_both_ways(ends, 10'000'000, seed);
}

TEST_CASE("a stream tells of bytes that the socket does not show any more", "[links]") {
  auto ends = ends_of(GENERATE(kind::plain, kind::tls), local_sockets());
  REQUIRE(shake_hands(ends).are_good());
  std::array<std::byte, 4> room{};
  CHECK(ends.server->read(room).outcome == state::needs_read);
  CHECK_FALSE(ends.server->has_more());
  REQUIRE(write_text(*ends.client, "123456").bytes == 6);
  ends.client.reset();
  CHECK(ends.server->read(room).bytes == 4);
  pollfd shown{ends.server->socket(), POLLIN, 0};
  CHECK((ends.server->has_more() || ::poll(&shown, 1, 0) == 1));
  CHECK(ends.server->read(room).bytes == 2);
  CHECK((ends.server->has_more() || ::poll(&shown, 1, 0) == 1));
  CHECK(ends.server->read(room).outcome == state::closed);
  CHECK(ends.server->read(room).outcome == state::closed);
  CHECK_FALSE(ends.server->has_more());
  CHECK(ends.server->failure().empty());
}

TEST_CASE("a stream that has no room to read into, or nothing to write, goes on",
          "[links]") {
  auto ends = ends_of(GENERATE(kind::plain, kind::tls), local_sockets());
  REQUIRE(shake_hands(ends).are_good());
  CHECK(ends.client->write({}).outcome == state::moved);
  CHECK(ends.client->write(std::vector<iovec>(2)).outcome == state::moved);
  CHECK(ends.client->read({}).outcome == state::moved);
  CHECK(ends.client->read({}).bytes == 0);
}

TEST_CASE("a write to a stream that the other side has left fails, without a signal",
          "[links]") {
  auto ends = ends_of(GENERATE(kind::plain, kind::tls), local_sockets());
  REQUIRE(shake_hands(ends).are_good());
  REQUIRE(write_text(*ends.server, "goodbye").bytes == 7);
  ends.server.reset();
  CHECK(write_text(*ends.client, "hello").outcome == state::failed);
  CHECK(ends.client->failure() == "Broken pipe");
  std::array<std::byte, 9> room{};
  CHECK(ends.client->read(room).bytes == 7); // earlier bytes are not lost
  CHECK(ends.client->read(room).outcome == state::closed);
}

TEST_CASE("a full stream asks to wait until it can be written", "[links]") {
  auto ends = ends_of(GENERATE(kind::plain, kind::tls), local_sockets());
  REQUIRE(shake_hands(ends).are_good());
  std::vector<char> much(1 << 20);
  const std::vector<iovec> part{{much.data(), much.size()}};
  stream_progress last{state::moved};
  for (int i = 0; i < 100 && last.outcome == state::moved; ++i)
    last = ends.client->write(part);
  CHECK(last.outcome == state::needs_write);
  CHECK(last.bytes == 0);
}

TEST_CASE("only a plain stream gives its socket away", "[links]") {
  auto plain = ends_of(kind::plain, local_sockets());
  const auto number = plain.client->socket();
  const auto taken = plain.client->take_socket();
  CHECK(taken.get() == number);
  CHECK_FALSE(plain.client->take_socket());
  CHECK_FALSE(ends_of(kind::tls, local_sockets()).client->take_socket());
}

} // namespace troupe::byte_stream_test
