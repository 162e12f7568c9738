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

acceptor::acceptor(listening_sockets at, stream_maker make, guest welcome, limits most)
  : at_(std::move(at)),
    make_(std::move(make)),
    welcome_(std::move(welcome)),
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
  ++strangers_;
}

void acceptor::take_new() {
  constexpr int at_once = 64;
  for (int i = 0; i < at_once; ++i) {
    auto socket = at_.accept();
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
                          .until = steady_clock::now() + most_.patience,
                          .events = POLLIN});
  }
}

acceptor::end acceptor::go_on(waiting& one) {
  using state = stream_progress::state;
  for (;;) {
    auto* const place = reinterpret_cast<std::byte*>(&one.first);
    const auto moved =
      one.shaken ? one.stream->read({place + one.there, sizeof one.first - one.there})
                 : one.stream->shake_hands();
    if (moved.how == state::needs_read || moved.how == state::needs_write) {
      one.events = moved.how == state::needs_read ? POLLIN : POLLOUT;
      return end::none;
    }
    if (moved.how != state::moved)
      return end::stranger;
    if (!std::exchange(one.shaken, true))
      continue;
    one.there += moved.bytes;
    if (one.there == sizeof one.first)
      return fault_of(one.first).empty() ? end::welcome : end::stranger;
  }
}

/// Closes the oldest of the connections whose handshakes hold memory, if the number of
/// such connections exceeds the limit.
void acceptor::bound_handshakes() {
  const auto has_handshake = [](const waiting& one) {
    return one.stream->has_handshake();
  };
  const auto count = std::ranges::count_if(waiting_, has_handshake);
  if (static_cast<std::size_t>(count) <= most_.most_handshakes + expected_)
    return;
  waiting_.erase(std::ranges::find_if(waiting_, has_handshake));
  ++strangers_;
}

/// Returns freed memory to the system after a crowd of rejected connections.
void acceptor::return_memory() {
  constexpr std::int64_t crowd = 64;
  if (!waiting_.empty() || strangers_ - trimmed_at_ < crowd)
    return;
  trimmed_at_ = strangers_;
  malloc_trim(0);
}

void acceptor::work() {
  std::vector<pollfd> waits;
  for (;;) {
    waits = {{.fd = stops_.descriptor(), .events = POLLIN, .revents = 0},
             {.fd = at_.descriptor(), .events = POLLIN, .revents = 0}};
    for (const auto& one : waiting_)
      waits.push_back({.fd = one.stream->socket(), .events = one.events, .revents = 0});
    constexpr int look_again = 100; // in ms: a connection's time may be over
    (void)poll(waits.data(), waits.size(), waiting_.empty() ? -1 : look_again);
    if (waits[0].revents != 0)
      return;
    auto ready = waits.begin() + 2;
    const auto now = steady_clock::now();
    for (auto one = waiting_.begin(); one != waiting_.end(); ++ready) {
      const bool had_handshake = one->stream->has_handshake();
      auto how = ready->revents != 0 ? go_on(*one) : end::none;
      if (how == end::none && now >= one->until)
        how = end::stranger;
      strangers_ += how == end::stranger;
      if (how == end::welcome)
        try {
          welcome_(one->first, std::move(one->stream));
        } catch (const std::exception&) { // no memory or no thread for the connection
          ++strangers_;
        }
      const bool begins =
        how == end::none && !had_handshake && one->stream->has_handshake();
      one = how == end::none ? std::next(one) : waiting_.erase(one);
      if (begins)
        bound_handshakes(); // erases this connection or an older one
    }
    if (waits[1].revents != 0)
      try {
        take_new();
      } catch (const std::exception&) { // no memory for a connection
        ++strangers_;
      }
    return_memory();
  }
}

namespace {

/// Waits until a stream can make progress. Returns false if the time is over.
bool wait_for(const byte_stream& stream, stream_progress::state what,
              steady_clock::time_point until) {
  const auto left =
    std::chrono::duration_cast<milliseconds>(until - steady_clock::now()).count();
  const short events = what == stream_progress::state::needs_read ? POLLIN : POLLOUT;
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
    if (p.how == state::moved)
      return {};
    if (p.how == state::closed || p.how == state::failed)
      return stream.failure().empty() ? "it closed the connection" : stream.failure();
    if (!wait_for(stream, p.how, until))
      return "it does not answer";
  }
}

} // namespace

tl::expected<std::unique_ptr<byte_stream>, std::string>
greet(const node_address& a, const acceptor::stream_maker& make, const greeting& first,
      milliseconds patience) {
  auto socket = connect_to(a, patience);
  if (!socket)
    return tl::unexpected{socket.error()};
  // all addresses may have taken as long
  const auto until = steady_clock::now() + patience;
  auto stream = make(std::move(*socket));
  auto wrong = insist(*stream, until, [&] { return stream->shake_hands(); });
  for (std::size_t sent = 0; wrong.empty() && sent < sizeof first;)
    wrong = insist(*stream, until, [&] {
      const auto* const bytes = reinterpret_cast<const std::byte*>(&first);
      const iovec rest{const_cast<std::byte*>(bytes) + sent, sizeof first - sent};
      const auto p = stream->write({&rest, 1});
      sent += p.bytes;
      return p;
    });
  if (!wrong.empty())
    return tl::unexpected{"node " + to_string(a) + ": " + wrong};
  return stream;
}

} // namespace troupe
