// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/page_server.hpp"

#include "tests/experiments/http_client.hpp"
#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <netinet/tcp.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

namespace troupe::page_server_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

int open_files() {
  using files = std::filesystem::directory_iterator;
  return static_cast<int>(std::distance(files{"/proc/self/fd"}, files{}));
}

/// The number of connections that may wait for acceptance at a port of this process.
unsigned longest_queue_at(int port) {
  for (const auto& file : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    const int socket = std::stoi(file.path().filename());
    int listens = 0;
    socklen_t size = sizeof listens;
    sockaddr_in at{};
    socklen_t size_of_at = sizeof at;
    tcp_info info{};
    socklen_t size_of_info = sizeof info;
    if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0
        && listens != 0
        && getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size_of_at) == 0
        && at.sin_port == htons(static_cast<std::uint16_t>(port))
        && getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size_of_info) == 0)
      return info.tcpi_sacked; // the backlog of a listening socket
  }
  return 0;
}

} // namespace

TEST_CASE("a page is served to who asks for it on this machine", "[watch]") {
  const auto server = page_server::open(0);
  REQUIRE(server);
  const int port = port_in((*server)->address());
  CHECK((*server)->address() == "http://127.0.0.1:" + std::to_string(port) + "/");
  CHECK_FALSE((*server)->is_read(std::chrono::hours{1}));
  CHECK_THAT(get(port, "/"), StartsWith("HTTP/1.1 404"));
  (*server)->put("/", "a page", "text/html");
  const auto first = get(port, "/");
  CHECK_THAT(first, StartsWith("HTTP/1.1 200"));
  CHECK_THAT(first, ContainsSubstring("Content-Type: text/html\r\n"));
  CHECK_THAT(first, ContainsSubstring("Cache-Control: no-store\r\n"));
  CHECK(body_of(first) == "a page");
  (*server)->put("/", std::string(3'000'000, 'x'), "text/html");
  CHECK(body_of(get(port, "/")) == std::string(3'000'000, 'x'));
  CHECK((*server)->is_read(std::chrono::hours{1}));
  CHECK_THAT(answer(port, "GET / HTTP/1.1\r\nHost: localhost:" + std::to_string(port)
                            + "\r\n\r\n"),
             StartsWith("HTTP/1.1 200"));
}

TEST_CASE("a page is sent as it is to a browser that would take it compressed",
          "[watch]") {
  const auto server = page_server::open(0);
  REQUIRE(server);
  (*server)->put("/", "a page", "text/html");
  const int port = port_in((*server)->address());
  const auto page =
    answer(port, "GET / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port)
                   + "\r\nAccept-Encoding: gzip, deflate, br\r\n\r\n");
  CHECK_THAT(page, ContainsSubstring("Content-Length: 6\r\n"));
  CHECK(body_of(page) == "a page");
}

TEST_CASE("a server leaves SIGPIPE to the program", "[watch]") {
  auto* const before = std::signal(SIGPIPE, SIG_DFL);
  const auto server = page_server::open(0);
  auto* const after = std::signal(SIGPIPE, before);
  CHECK(server);
  CHECK(after == SIG_DFL);
}

TEST_CASE("nothing but what is there, by this machine's name, is answered", "[watch]") {
  const auto server = page_server::open(0);
  REQUIRE(server);
  (*server)->put("/", "a page", "text/html");
  const int port = port_in((*server)->address());
  const auto host = "Host: 127.0.0.1:" + std::to_string(port) + "\r\n";
  const std::pair<std::string, std::string> all[] = {
    {"POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello", "405"},
    {"HEAD / HTTP/1.1\r\n" + host + "\r\n", "200"},
    {"PUT / HTTP/1.1\r\n" + host + "\r\n", "405"},
    {"OPTIONS * HTTP/1.1\r\n" + host + "\r\n", "405"},
    {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"},
    {"GET / HTTP/1.1\r\nHost: evil.example:" + std::to_string(port) + "\r\n\r\n",
     "403"},
    {"GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", "403"},
    {"GET / HTTP/1.1\r\n" + host + "Host: evil.example\r\n\r\n", "403"},
    {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "403"},
    {"GET / HTTP/1.1\r\n\r\n", "403"},
    {"GET / HTTP/1.0\r\n\r\n", "403"},
    {"GET /../../etc/passwd HTTP/1.1\r\n" + host + "\r\n", "404"},
    {"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + host + "\r\n", "404"},
    {"GET //etc/passwd HTTP/1.1\r\n" + host + "\r\n", "404"},
    {"GET /index.html HTTP/1.1\r\n" + host + "\r\n", "404"},
    {"GET http://127.0.0.1/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"},
    {"what is this\r\n\r\n", "400"},
    {std::string("\0\xff\xfe\r\n\r\n", 7), "400"},
    {"GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", "41"}};
  for (const auto& [request, status] : all) {
    INFO(request.substr(0, 80));
    const auto said = answer(port, request);
    CHECK_THAT(said, StartsWith("HTTP/1.1 " + status));
    CHECK(said.find("a page") == std::string::npos);
    if (request.starts_with("HEAD")) {
      CHECK_THAT(said, ContainsSubstring("Content-Length: 6\r\n"));
      CHECK(body_of(said).empty());
    }
    CHECK(said.find("root:") == std::string::npos);
    CHECK(body_of(get(port, "/")) == "a page"); // other requests are served as before
  }
}

// cpp-httplib before 0.15 sends the memory behind a text for a range that is too long.
TEST_CASE("a request for a range is answered with the page, and no byte beyond it",
          "[watch]") {
  const auto server = page_server::open(0);
  REQUIRE(server);
  (*server)->put("/", "a page", "text/html");
  const int port = port_in((*server)->address());
  for (const std::string range :
       {"0-99999", "2-3", "6-", "7-", "99999-100000", "-3", "-99999", "0-0,3-4", "5-2",
        "18446744073709551615-", "-18446744073709551615", "0-18446744073709551615", "-",
        "a-b", "0-1,0-1,0-99999"}) {
    INFO(range);
    const auto ask = [&](const std::string& line, const std::string& field = "Range") {
      return answer(port, line + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port)
                            + "\r\n" + field + ": bytes=" + range + "\r\n\r\n");
    };
    const auto page = ask("GET /");
    CHECK_THAT(page, StartsWith("HTTP/1.1 200"));
    CHECK_THAT(page, ContainsSubstring("Content-Length: 6\r\n"));
    CHECK(body_of(page) == "a page");
    CHECK(body_of(ask("GET /none")) == "The address has no page.\n");
    CHECK(body_of(ask("HEAD /")).empty());
    CHECK(body_of(ask("GET /", "rANGE")) == "a page");
  }
}

TEST_CASE("a request that comes byte by byte has a deadline, and keeps nobody out",
          "[watch]") {
  const auto server = page_server::open(0);
  REQUIRE(server);
  (*server)->put("/", "a page", "text/html");
  const int port = port_in((*server)->address());
  std::deque<client> crowd;
  for (int i = 0; i < 200; ++i)
    crowd.emplace_back(port).say("GET / HTTP/1.1\r\nX: ");
  std::atomic<bool> has_answer = false;
  std::atomic<int> rounds = 0;
  std::thread trickle{[&] {
    for (; !has_answer && rounds < 100; ++rounds) {
      for (const auto& one : crowd)
        one.say("x");
      std::this_thread::sleep_for(50ms);
    }
  }};
  CHECK(body_of(get(port, "/")) == "a page");
  has_answer = true;
  trickle.join();
  CHECK(rounds < 100);
  const client slow{port};
  constexpr std::size_t most = 4000; // fewer than a request's head may have
  std::size_t sent = 0;
  while (sent < most && !slow.is_closed()) {
    slow.say("x");
    ++sent;
    std::this_thread::sleep_for(5ms);
  }
  CHECK(sent < most);
}

TEST_CASE("who asks slowly, takes nothing or goes away keeps nobody waiting",
          "[watch]") {
  auto server = page_server::open(0);
  REQUIRE(server);
  (*server)->put("/", std::string(20'000'000, 'x'), "text/html");
  const int port = port_in((*server)->address());
  const auto request =
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n\r\n";
  const client half_a_request{port}, deaf{port};
  half_a_request.say("GET / HT");
  deaf.listen_badly();
  deaf.say(request);
  for (int i = 0; i < 3; ++i)
    client{port}.say(request); // and closes the connection
  const client one{port}, other{port};
  one.say(request);
  other.say(request);
  CHECK(body_of(one.hear()).size() == 20'000'000);
  CHECK(body_of(other.hear()).size() == 20'000'000);
  (*server)->put("/", "a page", "text/html");
  CHECK(body_of(get(port, "/")) == "a page");
  server->reset(); // while two requests are still being served
  CHECK_FALSE(client{port}.connected());
}

// Whether one connection too many loses its request depends on the order of threads. So
// the test also asks the kernel for the length of the queue.
TEST_CASE("as many as a browser may ask at once are all answered", "[watch]") {
  auto server = page_server::open(0);
  REQUIRE(server);
  (*server)->put("/", "a page", "text/html");
  const int port = port_in((*server)->address());
  REQUIRE(longest_queue_at(port) >= 100);
  std::deque<client> all;
  for (int i = 0; i < 100; ++i)
    all.emplace_back(port).say(
      "GET / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n\r\n");
  for (const auto& one : all)
    CHECK(body_of(one.hear()) == "a page");
}

TEST_CASE("who asks nothing leaves a run its files", "[watch]") {
  const auto server = page_server::open(0);
  REQUIRE(server);
  const int port = port_in((*server)->address());
  const auto before = open_files();
  std::deque<client> all;
  for (int i = 0; i < 300; ++i)
    all.emplace_back(port);
  const auto taken = [&] { return open_files() - before - 300; };
  for (int looks = 0; looks < 500 && taken() < 64; ++looks)
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(100ms); // time for more, if the server accepted more
  CHECK(taken() <= 64 + 2);
}

TEST_CASE("a port where another listens is no place for a page", "[watch]") {
  const auto first = page_server::open(0);
  REQUIRE(first);
  const int port = port_in((*first)->address());
  const auto second = page_server::open(port);
  REQUIRE_FALSE(second);
  CHECK(second.error()
        == "cannot listen at 127.0.0.1:" + std::to_string(port)
             + ": 127.0.0.1: Address already in use; give --watch another port, or no "
               "port for any free port");
  const temporary_folder folder;
  const auto ran =
    run_program_in(folder, "simulate --report r --watch " + std::to_string(port));
  CHECK(ran.exit_code == 2);
  CHECK(ran.err == "simulate: --watch: " + second.error() + "\n");
  CHECK(ran.out.empty());
  CHECK_FALSE(std::filesystem::exists(folder.path() / "r"));
}

} // namespace troupe::page_server_test
