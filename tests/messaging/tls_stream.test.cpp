// SPDX-License-Identifier: BSD-3-Clause
// A TLS connection after the handshake; behavior common to all streams is tested by
// byte_stream's test.

#include "messaging/links/tls_stream.hpp"

#include "tests/messaging/raw_tls.hpp"
#include "tests/messaging/stream_ends.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstring>
#include <vector>

namespace troupe::tls_stream_test {

using state = stream_progress::state;

TEST_CASE("a stream that is cut off ends, and says so", "[tls]") {
  const test_authority authority;
  auto sockets = tcp_sockets();
  stream_ends ends{authority.identity("a")->to_server(std::move(sockets.client), "b"),
                   authority.identity("b")->to_client(std::move(sockets.server))};
  REQUIRE(shake_hands(ends).are_good());
  ::shutdown(ends.client->socket(), SHUT_WR);
  std::array<std::byte, 9> room{};
  wait_for({pollfd{ends.server->socket(), POLLIN, 0}, pollfd{-1, 0, 0}});
  CHECK(ends.server->read(room).outcome == state::closed);
  CHECK(ends.server->failure() == "the connection was cut off");
}

TEST_CASE("a byte changed on its way fails the stream", "[tls]") {
  const test_authority authority;
  auto sockets = local_sockets();
  const socket_descriptor intruder{::dup(sockets.client.get())};
  stream_ends ends{authority.identity("a")->to_server(std::move(sockets.client), "b"),
                   authority.identity("b")->to_client(std::move(sockets.server))};
  REQUIRE(shake_hands(ends).are_good());
  send_raw(intruder, std::string{"\x17\x03\x03\x00\x20", 5} + std::string(32, 'x'));
  std::array<std::byte, 9> room{};
  CHECK(ends.server->read(room).outcome == state::failed);
  CHECK_FALSE(ends.server->failure().empty());
}

TEST_CASE("a stream changes its key long before it is worn", "[tls]") {
  const test_authority authority;
  auto sockets = local_sockets();
  auto raw =
    std::make_unique<raw_end>(std::move(sockets.server), raw_end::side::server);
  raw->show(authority.files("b"));
  SSL_CTX_load_verify_file(raw->context(), authority.files("b").authority.c_str());
  SSL_CTX_set_verify(raw->context(), SSL_VERIFY_PEER, nullptr);
  int changes = 0;
  SSL_CTX_set_msg_callback_arg(raw->context(), &changes);
  SSL_CTX_set_msg_callback(raw->context(), [](int, int, int type, const void* bytes,
                                              std::size_t, SSL*, void* count) {
    if (type == SSL3_RT_HANDSHAKE
        && *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE)
      ++*static_cast<int*>(count);
  });
  const auto client =
    authority.identity("a")->to_server(std::move(sockets.client), "b");
  bool joined = false, greeted = false;
  for (int i = 0; i < 100 && !joined; ++i) {
    joined = client->shake_hands().outcome == state::moved;
    if (!greeted && raw->shake_hands().outcome == state::moved)
      greeted = raw->write(std::vector<iovec>{{&changes, 1}}).outcome == state::moved;
  }
  REQUIRE(joined);
  std::vector<char> out(1 << 20, 'x');
  std::vector<std::byte> in(1 << 20);
  std::size_t sent = 0, received = 0;
  constexpr std::size_t all = std::size_t{300} << 20;
  while (received < all) {
    if (sent < all)
      sent += client->write(std::vector<iovec>{{out.data(), out.size()}}).bytes;
    const auto progress = raw->read(in);
    REQUIRE(progress.outcome != state::failed);
    REQUIRE(std::memcmp(in.data(), out.data(), progress.bytes) == 0);
    received += progress.bytes;
  }
  CHECK(changes == 1);
}

TEST_CASE("a stream changes its key while its socket takes no more", "[tls]") {
  const test_authority authority;
  auto sockets = local_sockets();
  const int least = 1;
  REQUIRE(
    ::setsockopt(sockets.client.get(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least)
    == 0);
  stream_ends ends{authority.identity("a")->to_server(std::move(sockets.client), "b"),
                   authority.identity("b")->to_client(std::move(sockets.server))};
  REQUIRE(shake_hands(ends).are_good());
  // Not a multiple of records: the key changes while some records wait to be sent.
  const std::vector<char> out(100000, 'x');
  std::vector<std::byte> in(1 << 20);
  constexpr std::size_t all = std::size_t{300} << 20;
  for (std::size_t sent = 0, received = 0; received < all;) {
    if (sent < all) {
      const auto progress = ends.client->write(
        std::vector<iovec>{{const_cast<char*>(out.data() + sent % out.size()),
                            out.size() - sent % out.size()}});
      INFO(ends.client->failure());
      REQUIRE(progress.outcome != state::closed);
      REQUIRE(progress.outcome != state::failed);
      sent += progress.bytes;
    }
    const auto progress = ends.server->read(in);
    INFO(ends.server->failure() << " after " << received);
    REQUIRE(progress.outcome != state::closed);
    REQUIRE(progress.outcome != state::failed);
    received += progress.bytes;
  }
}

} // namespace troupe::tls_stream_test
