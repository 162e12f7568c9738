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

constexpr std::size_t leader_places = 4; // in addition to the places of other clients
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
constexpr std::size_t most_unsent_of_visitor = 256 << 10;
constexpr std::size_t most_unsent_of_leader = std::size_t{64} << 20;

/// Time for a refused client to read the refusal.
constexpr nanoseconds time_to_read = 1'000'000'000;

} // namespace

node_server::node_server(listening_sockets at, acceptor::stream_maker make,
                         const player_means& means, settings how)
  : means_(means),
    how_(std::move(how)),
    acceptor_(std::make_unique<acceptor>(
      std::move(at), std::move(make),
      [this](const greeting& guest, std::unique_ptr<byte_stream> stream) {
        welcome(guest, std::move(stream));
      },
      how_.guests)) {
  watch_ = start_thread(1, [this] { watch_visitors(); });
}

node_server::~node_server() {
  acceptor_.reset();
  {
    const std::lock_guard guard{lock_};
    ends_ = true;
  }
  news_.notify_all();
  watch_.join();
  std::map<int, visitor> all;
  {
    const std::lock_guard guard{lock_};
    all.swap(visitors_);
  }
  for (auto& [number, one] : all)
    one.line->close(); // waits for callbacks of the line
}

void node_server::welcome(const greeting& guest, std::unique_ptr<byte_stream> stream) {
  if (guest.what == greeting::purpose::lead)
    return receive(guest, std::move(stream));
  std::shared_ptr<player> plays;
  {
    const std::lock_guard guard{lock_};
    plays = current_;
  }
  if (plays && plays->expects(guest))
    plays->join(guest, std::move(stream));
}

/// Gives a client a control line. The leader of the current or the last run always has
/// a place. Other clients are refused with a sentence if all places are taken, or if
/// memory for a line is missing.
void node_server::receive(const greeting& guest, std::unique_ptr<byte_stream> stream) {
  visitor one; // destroyed after the guard: closing the line takes the lock
  const std::lock_guard guard{lock_};
  const auto refused = static_cast<std::size_t>(std::ranges::count_if(
    visitors_, [](const auto& entry) { return entry.second.is_refused; }));
  const bool is_leader = session_ != decltype(session_){} && guest.session == session_;
  const auto places = how_.visitors + (is_leader ? leader_places : 0);
  const bool is_full = visitors_.size() - refused >= places;
  if (is_full && refused >= how_.visitors)
    return;
  const int number = next_visitor_++;
  one.is_refused = is_full;
  one.line = means_.by->line(
    std::move(stream),
    {.heard = [this, number](control_frame f) { hear(number, std::move(f)); },
     .ended = [this, number](const std::string& why) { leave(number, why); }});
  try {
    one.line->limit_unsent(most_unsent_of_visitor);
    if (is_full)
      one.line->send(
        mail::refused{"it accepts no more connections: " + std::to_string(how_.visitors)
                      + " wait already, and silent ones are closed after "
                      + std::to_string(how_.visitor_silence / 1s) + " s"});
    visitors_.emplace(number, std::move(one));
  } catch (const std::bad_alloc&) {
    one.line->send(mail::refused{"it has no memory for another connection"});
  }
}

void node_server::hear(int number, control_frame frame) {
  std::shared_ptr<player> plays;
  std::shared_ptr<control_line> line;
  bool sends_too_much = false;
  {
    const std::lock_guard guard{lock_};
    const auto found = visitors_.find(number);
    if (found == visitors_.end() || found->second.is_refused)
      return;
    auto& one = found->second;
    plays = one.plays;
    line = one.line;
    one.heard = wall_clock::steady();
    if (!plays) {
      one.received += std::ssize(frame.text) + frame_overhead;
      const auto seconds = (one.heard - one.since) / 1'000'000'000;
      sends_too_much = one.received > first_bytes + bytes_per_second * seconds;
    }
  }
  if (plays)
    return plays->hear(std::move(frame));
  if (sends_too_much)
    return leave(number);
  auto what = frame.what == control_frame::kind::node
                ? wire::decode_node_mail(frame.text)
                : tl::unexpected{std::string{"mail of no run"}};
  if (!what)
    return leave(number);
  if (std::holds_alternative<mail::ask_status>(*what))
    return answer(number);
  if (std::holds_alternative<mail::ask_identity>(*what))
    return line->send(mail::identity{identity_});
  if (std::holds_alternative<mail::beat>(*what)) // a leader that waits in the queue
                                                 // learns that this node is alive
    return line->send(mail::beat{});
  if (auto* const begins = std::get_if<mail::prepare>(&*what))
    return take(number, std::move(*begins));
  leave(number); // no other message is valid before a run
}

/// Sends the node's status, up to `most_questions` times per client.
void node_server::answer(int number) {
  std::shared_ptr<control_line> line;
  bool too_often = false;
  {
    const std::lock_guard guard{lock_};
    const auto found = visitors_.find(number);
    if (found == visitors_.end())
      return;
    line = found->second.line;
    too_often = ++found->second.questions > most_questions;
  }
  if (too_often)
    leave(number);
  else
    line->send(status());
}

/// Appends a run to the queue, or refuses that run.
void node_server::take(int number, mail::prepare begins) {
  const std::lock_guard guard{lock_};
  const auto found = visitors_.find(number);
  if (found == visitors_.end()
      || std::ranges::find(jobs_, number, &job::visitor) != jobs_.end())
    return; // one run per client
  const auto& line = found->second.line;
  if (begins.version != how_.version)
    return line->send(mail::refused{
      .why = "it is troupe " + how_.version + ", and the command has troupe "
             + begins.version + ": install one version on all machines",
      .lasts = true});
  if (begins.node < 1 || begins.node > static_cast<int>(begins.nodes.size())
      || begins.failure_timeout < 1'000'000)
    return line->send(
      mail::refused{.why = "the order has a part that no run has", .lasts = true});
  const bool plays = current_ != nullptr || !jobs_.empty();
  if (plays && static_cast<int>(jobs_.size()) >= how_.queue)
    return line->send(mail::refused{
      "it plays another run" + std::string{how_.queue > 0 ? ", and others wait" : ""}
      + ": try again when that is over"});
  if (plays)
    line->send(mail::node_status{how_.version,
                                 "plays another run; this one is number "
                                   + std::to_string(jobs_.size() + 1)
                                   + " of those that wait",
                                 static_cast<int>(jobs_.size()) + 1});
  line->send(mail::beat{}); // from now on the leader knows that a node has answered
  jobs_.push_back({number, std::move(begins)});
  news_.notify_all();
}

/// Removes a client whose line has ended or whose messages are invalid.
/// \param why the reason for which this side has ended the line, sent to the client as
/// a refusal; may be empty
void node_server::leave(int number, const std::string& why) {
  std::shared_ptr<player> plays;
  std::shared_ptr<control_line> line; // closed by its last handle, without the lock
  {
    const std::lock_guard guard{lock_};
    const auto found = visitors_.find(number);
    if (found == visitors_.end())
      return;
    plays = found->second.plays;
    line = found->second.line;
    visitors_.erase(found);
    std::erase_if(jobs_, [number](const job& j) { return j.visitor == number; });
  }
  if (!why.empty())
    line->send(mail::refused{"it has ended the connection: " + why, true});
  if (plays)
    plays->lose_lead();
}

mail::node_status node_server::status() const {
  const std::lock_guard guard{lock_};
  return {how_.version, current_ ? current_->description() : "is idle",
          static_cast<int>(jobs_.size())};
}

void node_server::watch_visitors() {
  std::unique_lock guard{lock_};
  while (!news_.wait_for(guard, 250ms, [this] { return ends_; })) {
    guard.unlock();
    try {
      dismiss_idlers();
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): at the next look
    }
    guard.lock();
  }
}

/// Closes the lines of clients that have no part in a run and have been silent for too
/// long. A leader that waits sends a beat several times per second.
void node_server::dismiss_idlers() {
  std::vector<std::shared_ptr<control_line>> idle; // closed without the lock
  const std::lock_guard guard{lock_};
  const auto now = wall_clock::steady();
  std::erase_if(visitors_, [&](auto& entry) {
    auto& [number, one] = entry;
    const auto allowed = one.is_refused ? time_to_read : how_.visitor_silence.count();
    const bool goes = !one.plays && now - one.heard > allowed;
    if (goes) {
      idle.push_back(std::move(one.line));
      std::erase_if(jobs_, [n = number](const job& j) { return j.visitor == n; });
    }
    return goes;
  });
}

void node_server::serve(const endings& when,
                        const std::function<void(const std::string&)>& told) {
  while (!when.at_once && !when.after_run) {
    std::shared_ptr<player> plays;
    {
      std::unique_lock guard{lock_};
      news_.wait_for(guard, 50ms, [this] { return !jobs_.empty(); });
      if (jobs_.empty())
        continue;
      auto next = std::move(jobs_.front());
      jobs_.pop_front();
      auto& from = visitors_.at(next.visitor);
      session_ = next.begins.session;
      acceptor_->expect(std::min(next.begins.nodes.size(), most_expected));
      from.line->limit_unsent(most_unsent_of_leader);
      try {
        from.plays = current_ = plays =
          std::make_shared<player>(means_, std::move(next.begins), from.line);
      } catch (const std::exception& wrong) { // memory, or a thread
        from.line->send(mail::refused{wrong.what()});
        acceptor_->expect(0);
        continue;
      }
    }
    told(plays->description());
    try {
      plays->play(&when.at_once);
      told("the run is over");
    } catch (const std::bad_alloc&) { // memory for the run; the node continues
      told("the run is over: out of memory");
    }
    acceptor_->expect(0);
    const std::lock_guard guard{lock_};
    for (auto& [number, one] : visitors_)
      if (one.plays == plays) {
        one.plays.reset();
        one.heard = one.since = wall_clock::steady();
        one.received = 0;
      }
    current_.reset();
  }
}

} // namespace troupe
