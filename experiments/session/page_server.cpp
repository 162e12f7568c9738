// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/page_server.hpp"

#include "experiments/session/http_texts.hpp"
#include "kernels/threads.hpp"
#include "messaging/links/byte_stream.hpp"
#include "messaging/links/listening_sockets.hpp"
#include "messaging/links/waker.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <list>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto loopback = "127.0.0.1";
// each takes a descriptor, and a run needs some too
constexpr std::size_t most_clients = 64;
constexpr std::size_t most_head_bytes = 16 << 10; // cpp-httplib refuses such a head
constexpr auto time_for_request = 2s; // from the connection to the end of the head
constexpr auto time_for_bytes = 5s;   // between two parts of an answer
constexpr auto time_for_close = 1s;   // from the end of the answer

/// Signals are for the program's other threads.
void block_signals() {
  sigset_t signals;
  sigfillset(&signals);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

} // namespace

struct page_server::state {
  /// A connection, which receives a request, sends the answer, then discards bytes
  /// until the client closes. Unread bytes would reset the connection before the client
  /// has read the answer.
  struct client {
    std::unique_ptr<byte_stream> stream;
    steady::time_point deadline = steady::now() + time_for_request;
    std::string received = {}; // of the head
    http_answer answer = {};   // without a head: the request is not complete
    std::size_t sent = 0;      // bytes of the answer

    std::size_t answer_bytes() const {
      return answer.head.size() + (answer.body ? answer.body->size() : 0);
    }
    bool is_sending() const { return sent < answer_bytes(); }
    stream_progress::state send_answer();
  };

  explicit state(listening_sockets sockets)
    : listens(std::move(sockets)), texts(listens.port()) {
    // nop
  }

  bool advance(client& c);
  bool close_oldest();
  bool accept_clients();
  void work();

  listening_sockets listens;
  http_texts texts;
  waker stops;
  std::list<client> clients; // of the thread, the oldest first
  std::thread thread;
};

/// Sends the rest of an answer, as far as the socket accepts it. Returns the state that
/// stopped the sending; `moved`: the answer is complete.
stream_progress::state page_server::state::client::send_answer() {
  while (is_sending()) {
    auto& [head, body] = answer;
    const auto of_head = std::min(sent, head.size());
    std::array<iovec, 2> parts{iovec{head.data() + of_head, head.size() - of_head}};
    if (body)
      parts[1] = {const_cast<char*>(body->data()) + (sent - of_head),
                  body->size() - (sent - of_head)};
    const auto moved = stream->write(parts);
    if (moved.outcome != stream_progress::state::moved)
      return moved.outcome;
    sent += moved.bytes;
    deadline = steady::now() + time_for_bytes;
  }
  ::shutdown(stream->socket(), SHUT_WR);
  deadline = steady::now() + time_for_close;
  return stream_progress::state::moved;
}

/// Receives and sends as much as the socket allows. Returns whether the connection
/// stays open.
bool page_server::state::advance(client& c) {
  using progress = stream_progress::state;
  std::array<char, 4096> block;
  while (c.answer.head.empty()) {
    const auto moved = c.stream->read(std::as_writable_bytes(std::span{block}));
    if (moved.outcome != progress::moved)
      return moved.outcome == progress::needs_read;
    c.received.append(block.data(), moved.bytes);
    if (c.received.find("\r\n\r\n") == std::string::npos
        && c.received.size() < most_head_bytes)
      continue;
    c.answer = texts.answer(c.received);
    if (c.answer.head.empty())
      return false;
  }
  if (c.is_sending()) {
    const auto stopped = c.send_answer();
    return stopped == progress::moved || stopped == progress::needs_write;
  }
  const auto moved = c.stream->read(std::as_writable_bytes(std::span{block}));
  return moved.outcome == progress::moved || moved.outcome == progress::needs_read;
}

/// Closes the oldest connection whose answer is not being sent, else the oldest.
/// Returns whether there was one.
bool page_server::state::close_oldest() {
  if (clients.empty())
    return false;
  const auto idle =
    std::ranges::find_if(clients, [](const client& c) { return !c.is_sending(); });
  clients.erase(idle == clients.end() ? clients.begin() : idle);
  return true;
}

/// Accepts connections, and answers requests that have arrived already. Returns false
/// if the process has no descriptors left.
bool page_server::state::accept_clients() {
  constexpr int at_once = 64;
  for (int i = 0; i < at_once; ++i) {
    auto socket = listens.accept();
    const bool has_no_more = !socket && (errno == EMFILE || errno == ENFILE);
    if (has_no_more && !close_oldest())
      return false;
    if (!socket && !has_no_more)
      return true;
    if (!socket)
      continue;
    if (clients.size() >= most_clients)
      close_oldest();
    clients.push_back({.stream = plain_stream(std::move(socket))});
    if (!advance(clients.back()))
      clients.pop_back();
  }
  return true;
}

void page_server::state::work() {
  block_signals();
  bool accepts = true;
  std::vector<pollfd> waits;
  for (;;) {
    waits = {
      {.fd = stops.descriptor(), .events = POLLIN, .revents = 0},
      {.fd = accepts ? listens.descriptor() : -1, .events = POLLIN, .revents = 0}};
    for (const auto& c : clients) {
      const short events = c.is_sending() ? POLLOUT : POLLIN;
      waits.push_back({.fd = c.stream->socket(), .events = events, .revents = 0});
    }
    constexpr int look_for_deadlines = 50; // ms
    (void)::poll(waits.data(), waits.size(),
                 clients.empty() && accepts ? -1 : look_for_deadlines);
    if (waits[0].revents != 0)
      return;
    auto ready = waits.begin() + 2;
    const auto now = steady::now();
    std::erase_if(clients, [&](client& c) {
      const bool is_ready = (ready++)->revents != 0;
      return (is_ready && !advance(c)) || now >= c.deadline;
    });
    accepts = waits[1].revents == 0 || accept_clients();
  }
}

page_server::page_server(std::unique_ptr<state> parts) : state_(std::move(parts)) {
  // nop
}

tl::expected<std::unique_ptr<page_server>, std::string> page_server::open(int port) {
  auto listens = listen_at({loopback, static_cast<std::uint16_t>(port)});
  if (!listens)
    return tl::unexpected{
      listens.error() + "; give --watch another port, or no port for any free port"};
  auto parts = std::make_unique<state>(std::move(*listens));
  try {
    parts->thread = start_thread(1, [&server = *parts] { server.work(); });
  } catch (const no_thread& error) {
    return tl::unexpected{std::string{error.what()}};
  }
  return std::unique_ptr<page_server>{new page_server{std::move(parts)}};
}

page_server::~page_server() {
  state_->stops.wake();
  state_->thread.join();
}

std::string page_server::address() const {
  return "http://" + std::string{loopback} + ":"
         + std::to_string(state_->listens.port()) + "/";
}

void page_server::put(const std::string& path, std::string text,
                      const std::string& type) {
  state_->texts.put(path, std::move(text), type);
}

bool page_server::is_read(std::chrono::milliseconds time) const {
  return state_->texts.is_read(time);
}

} // namespace troupe
