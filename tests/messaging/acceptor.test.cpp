// Strangers at a node's door: nobody comes in who does not greet as he should, and
// nobody keeps others out.

#include "messaging/links/acceptor.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A door, and how many came in.
struct door {
  std::atomic<int> guests = 0;
  acceptor takes{*listen_at({"127.0.0.1", 0}),
                 plain_stream,
                 [this](const greeting&, std::unique_ptr<byte_stream>) { ++guests; },
                 {.most_waiting = 16, .patience = 200ms}};

  node_address where() const { return {"127.0.0.1", takes.port()}; }
  socket_descriptor knock() const { return std::move(*connect_to(where(), 5s)); }
};

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
  REQUIRE(greet(at.where(), plain_stream, greeting{}, 5s));
  CHECK(within(5s, [&] { return at.guests == 1; }));
  const auto slow = at.knock();
  const greeting hello;
  for (std::size_t i = 0; i < sizeof hello; ++i)
    send(slow, reinterpret_cast<const char*>(&hello) + i, 1);
  CHECK(within(5s, [&] { return at.guests == 2; }));
  CHECK(at.takes.strangers() == 0);
}

TEST_CASE("noise, half a greeting and silence do not come in", "[links]") {
  door at;
  greeting hello;
  std::vector<socket_descriptor> all;
  all.push_back(at.knock());
  send(all.back(), std::string(64, 'x').data(), 64);
  all.push_back(at.knock());
  send(all.back(), &hello, 63);
  all.push_back(at.knock()); // says nothing
  all.push_back(at.knock());
  hello.version = 2;
  send(all.back(), &hello, sizeof hello);
  all.push_back(at.knock());
  hello = {};
  hello.what = static_cast<greeting::purpose>(9);
  send(all.back(), &hello, sizeof hello);
  all.push_back(at.knock());
  hello = {};
  hello.unused[1] = 1;
  send(all.back(), &hello, sizeof hello);
  CHECK(within(5s, [&] { return at.takes.strangers() == 6; }));
  CHECK(at.guests == 0);
}

TEST_CASE("a thousand who say nothing keep nobody out, and get no place for long",
          "[links]") {
  door at;
  // This process holds both ends: the acceptor and the guest need descriptors too.
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
  CHECK(greet(at.where(), plain_stream, greeting{}, 5s));
  CHECK(within(10s, [&] { return at.guests == 1; }));
  CHECK(within(10s, [&] {
    return at.takes.strangers() == static_cast<std::int64_t>(crowd.size());
  }));
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
