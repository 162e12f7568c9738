#include "experiments/session/page_server.hpp"

#include "experiments/session/http_request.hpp"
#include "kernels/threads.hpp"
#include "messaging/links/byte_stream.hpp"
#include "messaging/links/node_address.hpp"
#include "messaging/links/waker.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto loopback = "127.0.0.1";
constexpr std::size_t most_clients = 64; // descriptors, of which a run needs some too
constexpr std::size_t most_head_bytes = 8 << 10;
constexpr auto time_for_request = 2s; // from the connection to the end of the head
constexpr auto time_for_bytes = 5s;   // between two parts of an answer
constexpr auto time_for_close = 1s;   // from the end of the answer

constexpr auto fields = "Cache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\n"
                        "Cross-Origin-Resource-Policy: same-origin\r\n"
                        "Content-Security-Policy: frame-ancestors 'none'\r\n";

/// Signals are for the program's other threads.
void block_signals() {
  sigset_t signals;
  sigfillset(&signals);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

using shared_text = std::shared_ptr<const std::string>;

/// A connection: it receives a request, sends the answer, then discards what comes
/// until the client has closed. Bytes that were left unread would reset the connection
/// before the client has read the answer.
struct client {
  std::unique_ptr<byte_stream> stream;
  steady::time_point deadline = steady::now() + time_for_request;
  std::string received = {}; // of the head
  std::string head = {};     // of the answer; empty: the request is not complete
  shared_text body = {};     // null: the answer has none
  std::size_t sent = 0;      // bytes of head and body

  std::size_t answer_bytes() const { return head.size() + (body ? body->size() : 0); }
  bool is_sending() const { return !head.empty() && sent < answer_bytes(); }
};

/// Sends the rest of an answer, as far as the socket accepts it. Returns the state that
/// stopped it; `moved`: the answer is complete.
stream_progress::state send_answer(client& c) {
  while (c.is_sending()) {
    const auto of_head = std::min(c.sent, c.head.size());
    std::array<iovec, 2> parts{iovec{c.head.data() + of_head, c.head.size() - of_head}};
    if (c.body)
      parts[1] = {const_cast<char*>(c.body->data()) + (c.sent - of_head),
                  c.body->size() - (c.sent - of_head)};
    const auto moved = c.stream->write(parts);
    if (moved.how != stream_progress::state::moved)
      return moved.how;
    c.sent += moved.bytes;
    c.deadline = steady::now() + time_for_bytes;
  }
  ::shutdown(c.stream->socket(), SHUT_WR);
  c.deadline = steady::now() + time_for_close;
  return stream_progress::state::moved;
}

} // namespace

struct page_server::state {
  struct text {
    shared_text content;
    std::string type;
  };

  explicit state(listener_socket listener) : listens(std::move(listener)) {
    // nop
  }

  bool is_for_this_machine(const http_request& request) const;
  void answer(client& c, int status, const char* why, const std::string& more = {});
  void answer(client& c, std::string_view head);
  bool advance(client& c);
  bool make_room();
  bool accept_clients();
  void work();

  listener_socket listens;
  waker stops;
  mutable std::mutex lock;
  std::map<std::string, text> texts; // by path
  std::atomic<steady::time_point> asked_at{};
  std::list<client> clients; // of the thread, the oldest first
  std::thread thread;
};

bool page_server::state::is_for_this_machine(const http_request& request) const {
  const auto port = ":" + std::to_string(listens.port);
  return request.hosts.size() == 1
         && std::ranges::any_of(std::array{loopback, "localhost"}, [&](auto* name) {
              return request.hosts.front() == name + port
                     || (listens.port == 80 && request.hosts.front() == name);
            });
}

/// Prepares the answer to a request that gets no text.
void page_server::state::answer(client& c, int status, const char* why,
                                const std::string& more) {
  c.body = std::make_shared<const std::string>(std::string{why} + "\n");
  c.head = answer_head(status, "text/plain", c.body->size(), fields + more);
}

/// Prepares the answer to a complete head.
void page_server::state::answer(client& c, std::string_view head) {
  const auto request = parse_request(head);
  if (!request)
    return answer(c, request.error(), "This is no request of HTTP/1.1.");
  if (!is_for_this_machine(*request))
    return answer(c, 403, "This is served to this machine alone, by its own name.");
  if (request->method != "GET" && request->method != "HEAD")
    return answer(c, 405, "Only GET and HEAD are known here.", "Allow: GET, HEAD\r\n");
  asked_at = steady::now();
  const std::lock_guard guard{lock};
  const auto found = texts.find(request->path);
  if (found == texts.end())
    return answer(c, 404, "There is nothing here.");
  const auto& [content, type] = found->second;
  c.head = answer_head(200, type, content->size(), fields);
  if (request->method == "GET")
    c.body = content;
}

/// Receives and sends what the socket allows. Returns whether the connection stays.
bool page_server::state::advance(client& c) {
  using progress = stream_progress::state;
  std::array<char, 4096> block;
  while (c.head.empty()) {
    const auto moved = c.stream->read(std::as_writable_bytes(std::span{block}));
    if (moved.how != progress::moved)
      return moved.how == progress::needs_read;
    c.received.append(block.data(), moved.bytes);
    if (const auto size = head_bytes(c.received); size != std::string::npos)
      answer(c, std::string_view{c.received}.substr(0, size));
    else if (c.received.size() >= most_head_bytes)
      answer(c, c.received.find('\r') == std::string::npos ? 414 : 431,
             "The request is too long.");
  }
  if (c.is_sending()) {
    const auto stopped = send_answer(c);
    return stopped == progress::moved || stopped == progress::needs_write;
  }
  const auto moved = c.stream->read(std::as_writable_bytes(std::span{block}));
  return moved.how == progress::moved || moved.how == progress::needs_read;
}

/// Closes the oldest connection whose answer is not under way, else the oldest. Returns
/// whether there was one.
bool page_server::state::make_room() {
  if (clients.empty())
    return false;
  const auto idle =
    std::ranges::find_if(clients, [](const client& c) { return !c.is_sending(); });
  clients.erase(idle == clients.end() ? clients.begin() : idle);
  return true;
}

/// Accepts connections and answers those whose request is there. Returns false if the
/// process has no descriptors left.
bool page_server::state::accept_clients() {
  constexpr int at_once = 64;
  for (int i = 0; i < at_once; ++i) {
    auto socket = accept_from(listens.socket);
    const bool has_no_more = !socket && (errno == EMFILE || errno == ENFILE);
    if (has_no_more && !make_room())
      return false;
    if (!socket && !has_no_more)
      return true;
    if (!socket)
      continue;
    if (clients.size() >= most_clients)
      make_room();
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
      {.fd = accepts ? listens.socket.get() : -1, .events = POLLIN, .revents = 0}};
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

tl::expected<std::unique_ptr<page_server>, std::string> page_server::at(int port) {
  auto listens = listen_at({loopback, static_cast<std::uint16_t>(port)});
  if (!listens)
    return tl::unexpected{listens.error()
                          + "; name another port, or none for any that is free"};
  auto parts = std::make_unique<state>(std::move(*listens));
  try {
    parts->thread = start_thread(1, [&server = *parts] { server.work(); });
  } catch (const no_thread& wrong) {
    return tl::unexpected{std::string{wrong.what()}};
  }
  return std::unique_ptr<page_server>{new page_server{std::move(parts)}};
}

page_server::~page_server() {
  state_->stops.wake();
  state_->thread.join();
}

std::string page_server::address() const {
  return "http://" + std::string{loopback} + ":" + std::to_string(state_->listens.port)
         + "/";
}

void page_server::put(const std::string& path, std::string text,
                      const std::string& type) {
  auto content = std::make_shared<const std::string>(std::move(text));
  const std::lock_guard guard{state_->lock};
  state_->texts[path] = {std::move(content), type};
}

bool page_server::is_read(std::chrono::milliseconds time) const {
  const auto last = state_->asked_at.load();
  return last != steady::time_point{} && steady::now() - last < time;
}

} // namespace troupe
