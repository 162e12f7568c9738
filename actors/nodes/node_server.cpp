// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/node_server.hpp"

#include "kernels/threads.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace troupe {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t leader_capacity = 4; // in addition to the places of other clients
constexpr std::size_t most_expected = 4096; // nodes of a run that connect at the same
                                            // time
constexpr int most_questions = 16;

/// Bytes that a client without a run may send: a fixed number at first, and more with
/// time. A leader that waits in the queue sends at most 5 kB of beats per second.
constexpr std::int64_t first_bytes = 1 << 20;
constexpr std::int64_t bytes_per_second = 16 << 10;
constexpr std::int64_t frame_overhead = 64;

/// Upper bounds on answers that wait to be sent. A client without a run gets answers of
/// a few hundred bytes each.
constexpr std::size_t most_unsent_of_client = 256 << 10;
constexpr std::size_t most_unsent_of_leader = std::size_t{64} << 20;

/// Time for a refused client to read the refusal.
constexpr nanoseconds time_to_read = 1'000'000'000;

} // namespace

node_server::node_server(listening_sockets sockets, acceptor::stream_maker make,
                         const worker_services& services, settings options)
  : services_(services),
    options_(std::move(options)),
    acceptor_(std::make_unique<acceptor>(
      std::move(sockets), std::move(make),
      [this](const greeting& hello, std::unique_ptr<byte_stream> stream) {
        accept(hello, std::move(stream));
      },
      options_.connection_limits)) {
  watch_ = start_thread(1, [this] { watch_clients(); });
}

node_server::~node_server() {
  acceptor_.reset();
  {
    const std::lock_guard guard{lock_};
    ends_ = true;
  }
  news_.notify_all();
  watch_.join();
  std::map<int, client> remaining;
  {
    const std::lock_guard guard{lock_};
    remaining.swap(clients_);
  }
  for (auto& [number, leaving] : remaining)
    leaving.line->close(); // waits for callbacks of the line
}

void node_server::accept(const greeting& hello, std::unique_ptr<byte_stream> stream) {
  if (hello.intent == greeting::purpose::leader)
    return receive(hello, std::move(stream));
  std::shared_ptr<worker> running;
  {
    const std::lock_guard guard{lock_};
    running = current_;
  }
  if (running && running->expects(hello))
    running->join(hello, std::move(stream));
}

/// Gives a client a control line. The leader of the current or the last run always has
/// a place. Other clients are refused with a sentence if all places are taken, or if
/// memory for a line is missing.
void node_server::receive(const greeting& hello, std::unique_ptr<byte_stream> stream) {
  client newcomer; // destroyed after the guard: closing the line takes the lock
  const std::lock_guard guard{lock_};
  const auto refused = static_cast<std::size_t>(std::ranges::count_if(
    clients_, [](const auto& entry) { return entry.second.is_refused; }));
  const bool is_leader = session_ != decltype(session_){} && hello.session == session_;
  const auto capacity = options_.clients + (is_leader ? leader_capacity : 0);
  const bool is_full = clients_.size() - refused >= capacity;
  if (is_full && refused >= options_.clients)
    return;
  const int number = next_client_++;
  newcomer.is_refused = is_full;
  newcomer.line = services_.connections->line(
    std::move(stream),
    {.received = [this, number](control_frame f) { handle(number, std::move(f)); },
     .ended = [this, number](const std::string& why) { leave(number, why); }});
  try {
    newcomer.line->limit_unsent(most_unsent_of_client);
    if (is_full)
      newcomer.line->send(mail::refused{
        "it accepts no more connections: " + std::to_string(options_.clients)
        + " wait already, and silent connections are closed after "
        + std::to_string(options_.client_silence / 1s) + " s"});
    clients_.emplace(number, std::move(newcomer));
  } catch (const std::bad_alloc&) {
    newcomer.line->send(mail::refused{"it has no memory for another connection"});
  }
}

void node_server::handle(int number, control_frame frame) {
  std::shared_ptr<worker> running;
  std::shared_ptr<control_line> line;
  bool sends_too_much = false;
  {
    const std::lock_guard guard{lock_};
    const auto entry = clients_.find(number);
    if (entry == clients_.end() || entry->second.is_refused)
      return;
    auto& sender = entry->second;
    running = sender.running;
    line = sender.line;
    sender.last_message = wall_clock::steady();
    if (!running) {
      sender.received += std::ssize(frame.text) + frame_overhead;
      const auto seconds = (sender.last_message - sender.since) / 1'000'000'000;
      sends_too_much = sender.received > first_bytes + bytes_per_second * seconds;
    }
  }
  if (running)
    return running->handle(std::move(frame));
  if (sends_too_much)
    return leave(number);
  auto message = frame.type == control_frame::kind::node
                   ? wire::decode_node_message(frame.text)
                   : tl::unexpected{std::string{"a message of no run"}};
  if (!message)
    return leave(number);
  if (std::holds_alternative<mail::ask_status>(*message))
    return answer(number);
  if (std::holds_alternative<mail::ask_identity>(*message))
    return line->send(mail::identity{identity_});
  if (std::holds_alternative<mail::beat>(*message)) // a leader that waits in the queue
                                                    // learns that this node is alive
    return line->send(mail::beat{});
  if (auto* const request = std::get_if<mail::prepare>(&*message))
    return enqueue(number, std::move(*request));
  leave(number); // no other message is valid before a run
}

/// Sends the node's status, up to `most_questions` times per client.
void node_server::answer(int number) {
  std::shared_ptr<control_line> line;
  bool too_often = false;
  {
    const std::lock_guard guard{lock_};
    const auto entry = clients_.find(number);
    if (entry == clients_.end())
      return;
    line = entry->second.line;
    too_often = ++entry->second.questions > most_questions;
  }
  if (too_often)
    leave(number);
  else
    line->send(status());
}

/// Appends a run to the queue, or refuses that run.
void node_server::enqueue(int number, mail::prepare request) {
  const std::lock_guard guard{lock_};
  const auto entry = clients_.find(number);
  if (entry == clients_.end()
      || std::ranges::find(jobs_, number, &job::client) != jobs_.end())
    return; // one run per client
  const auto& line = entry->second.line;
  if (request.version != options_.version)
    return line->send(mail::refused{
      .why = "the node has troupe " + options_.version + ", and the leader has troupe "
             + request.version + ": install one version on all machines",
      .lasts = true});
  if (request.node < 1 || request.node > static_cast<int>(request.nodes.size())
      || request.failure_timeout < 1'000'000)
    return line->send(mail::refused{
      .why = "the leader's request has an invalid node number or failure timeout",
      .lasts = true});
  const bool is_busy = current_ != nullptr || !jobs_.empty();
  if (is_busy && static_cast<int>(jobs_.size()) >= options_.queue)
    return line->send(
      mail::refused{"the node is busy with another run"
                    + std::string{options_.queue > 0 ? ", and its queue is full" : ""}
                    + ": try again later"});
  if (is_busy)
    line->send(mail::node_status{options_.version,
                                 "is busy with another run; the new run is number "
                                   + std::to_string(jobs_.size() + 1) + " in the queue",
                                 static_cast<int>(jobs_.size()) + 1});
  line->send(mail::beat{}); // from now on the leader knows that a node has answered
  jobs_.push_back({number, std::move(request)});
  news_.notify_all();
}

/// Removes a client whose line has ended or whose messages are invalid.
/// \param why the reason for which this side has ended the line, sent to the client as
/// a refusal; may be empty
void node_server::leave(int number, const std::string& why) {
  std::shared_ptr<worker> running;
  std::shared_ptr<control_line> line; // closed by its last handle, without the lock
  {
    const std::lock_guard guard{lock_};
    const auto entry = clients_.find(number);
    if (entry == clients_.end())
      return;
    running = entry->second.running;
    line = entry->second.line;
    clients_.erase(entry);
    std::erase_if(jobs_, [number](const job& j) { return j.client == number; });
  }
  if (!why.empty())
    line->send(mail::refused{"it has ended the connection: " + why, true});
  if (running)
    running->lose_leader();
}

mail::node_status node_server::status() const {
  const std::lock_guard guard{lock_};
  return {options_.version, current_ ? current_->description() : "is idle",
          static_cast<int>(jobs_.size())};
}

void node_server::watch_clients() {
  std::unique_lock guard{lock_};
  while (!news_.wait_for(guard, 250ms, [this] { return ends_; })) {
    guard.unlock();
    try {
      close_idle_clients();
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): at the next look
    }
    guard.lock();
  }
}

/// Closes the lines of clients that have no part in a run and have been silent for too
/// long. A leader that waits sends a beat several times per second.
void node_server::close_idle_clients() {
  std::vector<std::shared_ptr<control_line>> idle; // closed without the lock
  const std::lock_guard guard{lock_};
  const auto now = wall_clock::steady();
  std::erase_if(clients_, [&](auto& entry) {
    auto& [number, candidate] = entry;
    const auto allowed =
      candidate.is_refused ? time_to_read : options_.client_silence.count();
    const bool goes = !candidate.running && now - candidate.last_message > allowed;
    if (goes) {
      idle.push_back(std::move(candidate.line));
      std::erase_if(jobs_, [n = number](const job& j) { return j.client == n; });
    }
    return goes;
  });
}

void node_server::serve(const endings& when,
                        const std::function<void(const std::string&)>& report) {
  while (!when.at_once && !when.after_run) {
    std::shared_ptr<worker> running;
    {
      std::unique_lock guard{lock_};
      news_.wait_for(guard, 50ms, [this] { return !jobs_.empty(); });
      if (jobs_.empty())
        continue;
      auto next = std::move(jobs_.front());
      jobs_.pop_front();
      auto& from = clients_.at(next.client);
      session_ = next.request.session;
      acceptor_->expect(std::min(next.request.nodes.size(), most_expected));
      from.line->limit_unsent(most_unsent_of_leader);
      try {
        from.running = current_ = running =
          std::make_shared<worker>(services_, std::move(next.request), from.line);
      } catch (const std::exception& error) { // memory, or a thread
        from.line->send(mail::refused{error.what()});
        acceptor_->expect(0);
        continue;
      }
    }
    report(running->description());
    try {
      running->run(&when.at_once);
      report("the run is over");
    } catch (const std::bad_alloc&) { // memory for the run; the node continues
      report("the run is over: out of memory");
    }
    acceptor_->expect(0);
    const std::lock_guard guard{lock_};
    for (auto& [number, candidate] : clients_)
      if (candidate.running == running) {
        candidate.running.reset();
        candidate.last_message = candidate.since = wall_clock::steady();
        candidate.received = 0;
      }
    current_.reset();
  }
}

} // namespace troupe
