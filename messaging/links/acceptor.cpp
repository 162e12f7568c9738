// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/acceptor.hpp"

#include "kernels/threads.hpp"

#include <malloc.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>
#include <vector>

namespace troupe {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

acceptor::acceptor(listening_sockets sockets, stream_maker make,
                   connection_handler on_connection, limits most)
  : sockets_(std::move(sockets)),
    make_(std::move(make)),
    on_connection_(std::move(on_connection)),
    most_(most),
    thread_(start_thread(1, [this] { work(); })) {
  // nop
}

acceptor::~acceptor() {
  stops_.wake();
  thread_.join();
}

void acceptor::drop_oldest() {
  waiting_.pop_front();
  ++rejected_;
}

void acceptor::take_new() {
  constexpr int at_once = 64;
  for (int i = 0; i < at_once; ++i) {
    auto socket = sockets_.accept();
    const bool needs_descriptor = !socket && (errno == EMFILE || errno == ENFILE);
    if (needs_descriptor && waiting_.empty()) // this process has other open ones
      std::this_thread::sleep_for(milliseconds{50});
    if (!socket && (!needs_descriptor || waiting_.empty()))
      return;
    if (needs_descriptor || waiting_.size() >= most_.most_waiting + expected_)
      drop_oldest();
    if (!socket)
      continue;
    if (auto stream = make_(std::move(socket)))
      waiting_.push_back({.stream = std::move(stream),
                          .until = steady_clock::now() + most_.timeout,
                          .events = POLLIN});
  }
}

acceptor::end acceptor::advance(waiting& connection) {
  using state = stream_progress::state;
  for (;;) {
    auto* const bytes = reinterpret_cast<std::byte*>(&connection.first);
    const auto moved =
      connection.shaken
        ? connection.stream->read({bytes + connection.greeting_bytes,
                                   sizeof connection.first - connection.greeting_bytes})
        : connection.stream->shake_hands();
    if (moved.outcome == state::needs_read || moved.outcome == state::needs_write) {
      connection.events = moved.outcome == state::needs_read ? POLLIN : POLLOUT;
      return end::none;
    }
    if (moved.outcome != state::moved)
      return end::rejected;
    if (!std::exchange(connection.shaken, true))
      continue;
    connection.greeting_bytes += moved.bytes;
    if (connection.greeting_bytes == sizeof connection.first)
      return greeting_error(connection.first).empty() ? end::accepted : end::rejected;
  }
}

/// Closes the oldest of the connections whose handshakes hold memory, if the number of
/// such connections exceeds the limit.
void acceptor::bound_handshakes() {
  const auto has_handshake = [](const waiting& connection) {
    return connection.stream->has_handshake();
  };
  const auto count = std::ranges::count_if(waiting_, has_handshake);
  if (static_cast<std::size_t>(count) <= most_.most_handshakes + expected_)
    return;
  waiting_.erase(std::ranges::find_if(waiting_, has_handshake));
  ++rejected_;
}

/// Returns freed memory to the system after a crowd of rejected connections.
void acceptor::return_memory() {
  constexpr std::int64_t crowd = 64;
  if (!waiting_.empty() || rejected_ - trimmed_at_ < crowd)
    return;
  trimmed_at_ = rejected_;
  malloc_trim(0);
}

void acceptor::work() {
  std::vector<pollfd> waits;
  for (;;) {
    waits = {{.fd = stops_.descriptor(), .events = POLLIN, .revents = 0},
             {.fd = sockets_.descriptor(), .events = POLLIN, .revents = 0}};
    for (const auto& connection : waiting_)
      waits.push_back(
        {.fd = connection.stream->socket(), .events = connection.events, .revents = 0});
    constexpr int poll_interval_ms = 100; // in ms: a connection's time may be over
    (void)poll(waits.data(), waits.size(), waiting_.empty() ? -1 : poll_interval_ms);
    if (waits[0].revents != 0)
      return;
    auto ready = waits.begin() + 2;
    const auto now = steady_clock::now();
    for (auto connection = waiting_.begin(); connection != waiting_.end(); ++ready) {
      const bool had_handshake = connection->stream->has_handshake();
      auto outcome = ready->revents != 0 ? advance(*connection) : end::none;
      if (outcome == end::none && now >= connection->until)
        outcome = end::rejected;
      rejected_ += outcome == end::rejected;
      if (outcome == end::accepted)
        try {
          on_connection_(connection->first, std::move(connection->stream));
        } catch (const std::exception&) { // no memory or no thread for the connection
          ++rejected_;
        }
      const bool begins =
        outcome == end::none && !had_handshake && connection->stream->has_handshake();
      connection =
        outcome == end::none ? std::next(connection) : waiting_.erase(connection);
      if (begins)
        bound_handshakes(); // erases this connection or an older one
    }
    if (waits[1].revents != 0)
      try {
        take_new();
      } catch (const std::exception&) { // no memory for a connection
        ++rejected_;
      }
    return_memory();
  }
}

namespace {

/// Waits until a stream can make progress. Returns false if the time is over.
bool wait_for(const byte_stream& stream, stream_progress::state needed,
              steady_clock::time_point until) {
  const auto left =
    std::chrono::duration_cast<milliseconds>(until - steady_clock::now()).count();
  const short events = needed == stream_progress::state::needs_read ? POLLIN : POLLOUT;
  pollfd waits{.fd = stream.socket(), .events = events, .revents = 0};
  return left > 0 && poll(&waits, 1, static_cast<int>(left)) > 0;
}

/// Repeats a step of a stream until its end. Returns the error; empty if there is none.
template <class Step>
std::string insist(byte_stream& stream, steady_clock::time_point until,
                   const Step& step) {
  using state = stream_progress::state;
  for (;;) {
    const auto p = step();
    if (p.outcome == state::moved)
      return {};
    if (p.outcome == state::closed || p.outcome == state::failed)
      return stream.failure().empty() ? "it closed the connection" : stream.failure();
    if (!wait_for(stream, p.outcome, until))
      return "it does not answer";
  }
}

} // namespace

tl::expected<std::unique_ptr<byte_stream>, std::string>
connect_and_greet(const node_address& a, const acceptor::stream_maker& make,
                  const greeting& first, milliseconds timeout) {
  auto socket = connect_to(a, timeout);
  if (!socket)
    return tl::unexpected{socket.error()};
  // all addresses may have taken as long
  const auto until = steady_clock::now() + timeout;
  auto stream = make(std::move(*socket));
  auto error = insist(*stream, until, [&] { return stream->shake_hands(); });
  for (std::size_t sent = 0; error.empty() && sent < sizeof first;)
    error = insist(*stream, until, [&] {
      const auto* const bytes = reinterpret_cast<const std::byte*>(&first);
      const iovec rest{const_cast<std::byte*>(bytes) + sent, sizeof first - sent};
      const auto p = stream->write({&rest, 1});
      sent += p.bytes;
      return p;
    });
  if (!error.empty())
    return tl::unexpected{"node " + to_string(a) + ": " + error};
  return stream;
}

} // namespace troupe
