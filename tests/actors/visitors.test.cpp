// SPDX-License-Identifier: BSD-3-Clause
// Connections that have greeted a node and have no part in a run: the budgets, and the
// number of such connections.

#include "actors/nodes/node_server.hpp"
#include "actors/nodes/receive_queue.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

namespace troupe::visitors_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

class plain_links : public connector {
public:
  std::unique_ptr<byte_stream> to(socket_descriptor socket,
                                  const std::string&) override {
    return plain_stream(std::move(socket));
  }
  std::shared_ptr<control_line> line(std::unique_ptr<byte_stream> stream,
                                     control_listener listener) override {
    return lines_.add(stream->take_socket(), std::move(listener));
  }

private:
  control_lines lines_;
};

/// Lines that find no memory after creation.
class links_without_memory : public plain_links {
public:
  std::shared_ptr<control_line> line(std::unique_ptr<byte_stream>,
                                     control_listener listener) override {
    return std::make_shared<failing_line>(*this, std::move(listener));
  }

  receive_queue<std::string> refusals;
  receive_queue<bool> closed; // whether the listener could be called in the meantime
  std::thread calls;          // the listener

private:
  class failing_line : public control_line {
  public:
    failing_line(links_without_memory& owner, control_listener listener)
      : owner_(owner), listener_(std::move(listener)) {
      // nop
    }
    ~failing_line() override {
      std::promise<void> ended;
      const auto is_called = ended.get_future();
      owner_.calls = std::thread{
        [told = std::move(listener_.ended), ended = std::move(ended)]() mutable {
          told("");
          ended.set_value();
        }};
      owner_.closed.put(is_called.wait_for(5s) == std::future_status::ready);
    }
    using control_line::send;
    void send(control_frame frame) override {
      const auto message = wire::decode_node_message(frame.text).value();
      owner_.refusals.put(std::get<mail::refused>(message).why);
    }
    void limit_unsent(std::size_t) override { throw std::bad_alloc{}; }
    void close() override {}

  private:
    links_without_memory& owner_;
    control_listener listener_;
  };
};

constexpr std::array<std::uint64_t, 2> session{1, 2};

/// A node, and a thread that runs the node's part of each run: each run is refused once
/// the test releases the run.
struct node {
  explicit node(std::chrono::nanoseconds silence, acceptor::limits guests = {})
    : server(*listen_at({"127.0.0.1", 0}), plain_stream, means,
             {.version = "test",
              .connection_limits = guests,
              .clients = 2,
              .client_silence = silence}),
      plays([this] { server.serve(stop, [](const std::string&) {}); }) {
    // nop
  }
  ~node() {
    release_once();
    stop = true;
    plays.join();
  }
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  void release_once() {
    if (!std::exchange(is_released, true))
      release.set_value();
  }

  plain_links links;
  std::promise<void> begun, release;
  bool is_released = false;
  worker_services means{.plan =
                          [this](const mail::prepare&) {
                            begun.set_value();
                            release.get_future().wait();
                            return tl::expected<run_plan, std::string>{
                              tl::unexpected{std::string{"not today"}}};
                          },
                        .connections = &links};
  std::atomic<bool> stop = false;
  node_server server;
  std::thread plays;
};

/// A connection to a node.
class visitor {
public:
  explicit visitor(node& at, const greeting& hello = {})
    : line_(at.links.line(
      *at.links.greet({"127.0.0.1", at.server.port()}, hello, 5s),
      {.received =
         [this](const control_frame& frame) {
           received_.put(wire::decode_node_message(frame.text).value());
         },
       .ended = [this](const std::string&) { received_.put(std::nullopt); }})) {
    // nop
  }
  ~visitor() { line_->close(); }
  visitor(const visitor&) = delete;
  visitor& operator=(const visitor&) = delete;

  void send(const wire::node_message& message) { line_->send(message); }

  /// The next message; absent: the line has ended.
  std::optional<wire::node_message> next() {
    auto message = received_.take(60s);
    REQUIRE(message);
    return *message;
  }

  /// Whether the line has ended; heartbeats that have come are dropped.
  bool has_ended() {
    for (;;) {
      const auto message = received_.take(0ms);
      if (!message || !*message)
        return message.has_value();
    }
  }

private:
  receive_queue<std::optional<wire::node_message>> received_;
  std::shared_ptr<control_line> line_;
};

/// A run on one node.
mail::prepare small_run() {
  return {.version = "test",
          .session = session,
          .node = 1,
          .nodes = {"127.0.0.1:1"},
          .node_map = {1},
          .options = {},
          .keep = {},
          .updates = {},
          .layers = {},
          .failure_timeout = 60'000'000'000};
}

/// Makes a client lead the node's run.
void lead_run(node& at, visitor& leader) {
  leader.send(small_run());
  at.begun.get_future().wait();
}

/// The node's status, asked by connections of their own: the node may close a slow one.
mail::node_status status_of(node& at) {
  for (;;) {
    visitor asks{at};
    asks.send(mail::ask_status{});
    if (const auto answer = asks.next())
      if (const auto* const status = std::get_if<mail::node_status>(&*answer))
        return *status;
  }
}

/// Both ends of a line; each end keeps what it receives.
struct two_ends {
  two_ends() {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends)
            == 0);
    near = lines.add(
      socket_descriptor{ends[0]},
      {.received = {}, .ended = [this](const std::string&) { ended.set_value(); }});
    far = socket_descriptor{ends[1]};
  }
  ~two_ends() { near->close(); }
  two_ends(const two_ends&) = delete;
  two_ends& operator=(const two_ends&) = delete;

  std::promise<void> ended;
  control_lines lines;
  std::shared_ptr<control_line> near;
  socket_descriptor far;
};

control_frame frame_of(std::size_t bytes) {
  return {control_frame::kind::node, 0, wire::bytes(bytes, 'x')};
}

} // namespace

TEST_CASE("a line ends that its other side does not read", "[visitors]") {
  two_ends line;
  line.near->limit_unsent(1'000'000);
  auto ended = line.ended.get_future();
  for (int i = 0; i < 10; ++i) // fewer than the limit
    line.near->send(frame_of(50'000));
  CHECK(ended.wait_for(50ms) == std::future_status::timeout);
  for (int i = 0; i < 100; ++i)
    line.near->send(frame_of(50'000));
  CHECK(ended.wait_for(60s) == std::future_status::ready);
}

TEST_CASE("a line that is read sends any number of bytes", "[visitors]") {
  two_ends line;
  line.near->limit_unsent(100'000);
  receive_queue<std::size_t> received;
  const auto far = line.lines.add(
    std::move(line.far),
    {.received = [&](const control_frame& frame) { received.put(frame.text.size()); },
     .ended = {}});
  for (int i = 0; i < 100; ++i) {
    line.near->send(frame_of(60'000));
    CHECK(received.take(60s) == 60'000);
  }
  far->close();
}

TEST_CASE("a visitor that sends without end is closed", "[visitors]") {
  node at{60s};
  visitor flood{at};
  mail::beat beat;
  beat.at_work = std::string(4'000, 'x');
  int sent = 0;
  for (; sent < 2'000 && !flood.has_ended(); ++sent) {
    flood.send(beat);
    flood.send(mail::beat{});
    std::this_thread::sleep_for(1ms);
  }
  CHECK(sent < 2'000);
}

TEST_CASE("a visitor that asks for the status without end is closed", "[visitors]") {
  node at{60s};
  visitor one{at};
  constexpr int most = 16;
  for (int i = 0; i < 2 * most; ++i)
    one.send(mail::ask_status{});
  int answers = 0;
  while (answers <= most && one.next())
    ++answers;
  CHECK(answers <= most);
}

TEST_CASE("clocks are for runs: a visitor that asks for one is closed", "[visitors]") {
  node at{60s};
  visitor one{at};
  one.send(mail::clock_probe{1, 2});
  CHECK_FALSE(one.next());
}

TEST_CASE("a silent visitor goes while a run is played, one that waits stays",
          "[visitors]") {
  node at{3s};
  visitor leader{at};
  lead_run(at, leader);
  visitor waits{at};
  visitor silent{at, {.session = session}};
  bool has_gone = false;
  for (int looks = 0; looks < 4'000 && !has_gone; ++looks) {
    waits.send(mail::beat{});
    std::this_thread::sleep_for(5ms);
    has_gone = silent.has_ended();
  }
  CHECK(has_gone);
  waits.send(mail::ask_status{});
  std::optional<wire::node_message> answer;
  do
    answer = waits.next();
  while (answer && std::holds_alternative<mail::beat>(*answer));
  REQUIRE(answer);
  CHECK(std::get<mail::node_status>(*answer).doing
        == "executes ranks of a run as node 1 of 1");
}

TEST_CASE("a visitor without a place is told, and the run's leader has one",
          "[visitors]") {
  node at{60s};
  visitor leader{at};
  lead_run(at, leader);
  const visitor idle{at};
  visitor other{at};
  const auto refused = other.next();
  REQUIRE(refused);
  CHECK_THAT(std::get<mail::refused>(*refused).why,
             ContainsSubstring("it accepts no more connections")
               && ContainsSubstring("2 wait already"));
  CHECK_FALSE(other.next()); // closed
  visitor again{at, {.session = session, .generation = 1}};
  again.send(mail::ask_status{});
  const auto status = again.next();
  REQUIRE(status);
  CHECK(std::get<mail::node_status>(*status).version == "test");
  visitor guess{at, {.session = {1, 3}}};
  CHECK(std::holds_alternative<mail::refused>(*guess.next()));
}

TEST_CASE("a node has room at its door for all nodes of the run that it plays",
          "[visitors]") {
  node at{60s, {.most_waiting = 2, .timeout = 10min}};
  visitor leader{at};
  lead_run(at, leader); // of one node
  const auto knock = [&] { return *connect_to({"127.0.0.1", at.server.port()}, 5s); };
  const auto is_open = [](const socket_descriptor& one) {
    char next = 0;
    return recv(one.get(), &next, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  };
  const auto first = knock(), second = knock();
  visitor third{at};
  third.send(mail::ask_status{});
  CHECK(third.next());
  CHECK((is_open(first) && is_open(second)));
}

TEST_CASE("a visitor that finds no memory is told, and its line closes unlocked",
          "[visitors]") {
  links_without_memory links;
  const worker_services means{.plan = {}, .connections = &links};
  const node_server server{
    *listen_at({"127.0.0.1", 0}), plain_stream, means, {.version = "test"}};
  const auto connection = links.greet({"127.0.0.1", server.port()}, {}, 5s);
  REQUIRE(connection);
  CHECK(links.refusals.take(60s) == "it has no memory for another connection");
  CHECK(links.closed.take(60s) == true);
  links.calls.join();
}

TEST_CASE("visitors that are refused have none of the leader's places", "[visitors]") {
  node at{60s};
  visitor leader{at};
  lead_run(at, leader);
  const visitor idle{at};
  visitor first{at}, second{at};
  for (auto* const refused : {&first, &second})
    CHECK(std::holds_alternative<mail::refused>(*refused->next()));
  std::list<visitor> others; // of the leader's session
  for (int i = 0; i < 4; ++i) {
    auto& one = others.emplace_back(at, greeting{.session = session});
    one.send(mail::ask_status{});
    const auto status = one.next();
    REQUIRE(status);
    CHECK(std::holds_alternative<mail::node_status>(*status));
  }
}

TEST_CASE("a run that is asked for twice waits once", "[visitors]") {
  node at{60s};
  visitor leader{at};
  lead_run(at, leader);
  visitor waits{at};
  waits.send(small_run());
  waits.send(small_run());
  waits.send(mail::ask_status{});
  for (;;) {
    const auto answer = waits.next();
    REQUIRE(answer);
    const auto* const status = std::get_if<mail::node_status>(&*answer);
    if (status == nullptr || !status->doing.starts_with("executes ranks"))
      continue; // the number in line, or a heartbeat
    CHECK(status->waiting == 1);
    break;
  }
}

TEST_CASE("a run whose leader goes silent waits no longer", "[visitors]") {
  node at{300ms};
  visitor leader{at};
  lead_run(at, leader);
  visitor silent{at};
  silent.send(small_run());
  while (silent.next()) { // until the node ends the line
  }
  CHECK(status_of(at).waiting == 0);
  at.release_once();
  while (status_of(at).doing != "is idle") { // the next run would run here
  }
}

} // namespace troupe::visitors_test
