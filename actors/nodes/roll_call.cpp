// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/roll_call.hpp"

#include "actors/nodes/this_machine.hpp"
#include "kernels/threads.hpp"
#include "messaging/links/expects_tls.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

namespace {

constexpr int probes = 32; // of a node's clock

nanoseconds nanoseconds_of(std::chrono::milliseconds t) {
  return std::chrono::nanoseconds{t}.count();
}

} // namespace

roll_call::roll_call(std::vector<std::string> names,
                     std::chrono::milliseconds failure_timeout,
                     std::function<void(const std::string&)> waits)
  : timeout_(failure_timeout), waits_(std::move(waits)), nodes_(names.size()) {
  for (std::size_t i = 0; i < names.size(); ++i)
    nodes_[i].name = std::move(names[i]);
  watch_ = start_thread(1, [this] { keep_watch(); });
}

roll_call::~roll_call() {
  (void)end();
}

void roll_call::add(int number, std::shared_ptr<control_line> line) {
  const std::lock_guard guard{lock_};
  at(number).heard = wall_clock::steady();
  at(number).line = std::move(line);
}

void roll_call::note(int number) {
  const std::lock_guard guard{lock_};
  at(number).heard = wall_clock::steady();
  at(number).answered = true;
}

/// Handles a node's message, by type.
struct roll_call::reading {
  roll_call& of;
  int number;
  node& from;

  void operator()(mail::identity& m) {
    if (comes_to(step::known))
      from.identity = m.bits;
  }
  void operator()(mail::prepared& m) {
    if (comes_to(step::prepared))
      from.facts = std::move(m);
  }
  void operator()(mail::connected& m) {
    if (comes_to(step::connected))
      from.ids = std::move(m.ids);
  }
  void operator()(mail::ready&) { comes_to(step::ready); }
  void operator()(mail::refused& m) {
    from.lasts = from.lasts || (m.lasts && from.fault.empty());
    of.fail(from, from.name + (m.leaves ? " is lost: " : ": ") + m.why, m.leaves);
  }
  void operator()(mail::node_status& m) {
    if (of.waits_)
      of.waits_(from.name + " " + m.doing);
  }
  void operator()(mail::beat& m) {
    from.verdict = static_cast<stall_rule::verdict>(std::clamp(m.verdict, 0, 2));
    from.at_work = std::move(m.at_work);
  }
  void operator()(mail::node_report& m) { from.report = std::move(m); }
  void operator()(mail::lost_node& m) { of.suspect(number, m); }

  void operator()(mail::clock_probe& m) {
    if (from.probes.erase(m.lead) == 0)
      return; // it has been answered
    const auto round_trip = from.heard - m.lead;
    if (round_trip < 0
        || (from.best_round_trip >= 0 && round_trip >= from.best_round_trip))
      return;
    from.best_round_trip = round_trip;
    from.offset = m.node - (m.lead + from.heard) / 2;
  }

  /// Checks that steps come one after another, each once.
  bool comes_to(step next) {
    const bool follows = static_cast<int>(next) == static_cast<int>(from.how_far) + 1;
    if (follows)
      from.how_far = next;
    else
      of.fail(from, from.name + ": it repeated a message about its progress", true);
    return follows;
  }

  template <class Other> // a message that no node sends
  void operator()(Other&) {
    of.fail(from, from.name + ": it sent a message that no node sends", true);
  }
};

void roll_call::take(int number, wire::node_mail what) {
  {
    const std::lock_guard guard{lock_};
    at(number).heard = wall_clock::steady();
    at(number).answered = true;
    std::visit(reading{*this, number, at(number)}, what);
  }
  news_.notify_all();
}

/// Records a failure of a node; the first failure counts. \pre locked
void roll_call::fail(node& one, const std::string& why, bool is_lost) {
  one.gone = one.gone || is_lost;
  if (!one.fault.empty() || ending_)
    return;
  one.fault = why;
  one.is_loss = is_lost && one.answered;
  if (board_ == nullptr)
    return;
  has_lost_ = has_lost_ || is_lost;
  board_->post_failure(why);
}

/// Notes that node `reporter` has lost the link to another node. If the other node is
/// gone, its control line ends as well. The report waits for that end, so that the
/// right node is named. \pre locked
void roll_call::suspect(int by, const mail::lost_node& what) {
  // The side that ended a line reports the reason; the other side sees only the end.
  const bool says_more =
    suspected_ && suspected_->why.ends_with(line_end) && what.why != line_end;
  if (ending_ || (suspected_ && !says_more))
    return;
  suspected_ = {by, what.node,
                "the link between " + at(by).name + " and "
                  + (is_node(what.node) ? at(what.node).name : "the lead")
                  + " is broken: " + what.why,
                nanoseconds_of(std::min(timeout_, 1000ms))};
}

/// Returns the error text for a node. A process that has never answered may be no node.
std::string roll_call::loss_of(const node& one, const std::string& why) {
  if (one.answered)
    return one.name + " is lost: " + why;
  if (why == expects_tls)
    return one.name + ": " + why;
  return one.name + ": " + why
         + "; it may want --tls, or none, have another version of troupe, or be no "
           "node of troupe";
}

void roll_call::lose(int number, const std::string& why, bool link) {
  {
    const std::lock_guard guard{lock_};
    auto& one = at(number);
    if (link && ending_)
      return;
    if (link) // the node's own line may give the reason
      return suspect(number, {0, why});
    fail(
      one,
      loss_of(one, why + (why == closed_line && !one.answered ? before_anything : "")),
      true);
  }
  news_.notify_all();
}

void roll_call::tell(int number, const wire::node_mail& what) {
  const std::lock_guard guard{lock_};
  if (at(number).line && !at(number).gone)
    at(number).line->send(what);
}

void roll_call::tell_all(const wire::node_mail& what) {
  for (int number = 1; number <= std::ssize(nodes_); ++number)
    tell(number, what);
}

void roll_call::await(step how_far, const std::atomic<bool>* interrupted,
                      std::optional<int> number) {
  std::unique_lock guard{lock_};
  const auto there = [&](const node& n) { return n.how_far >= how_far; };
  while (number ? !there(at(*number)) : !std::ranges::all_of(nodes_, there)) {
    throw_fault();
    if (interrupted != nullptr && interrupted->load())
      throw ended_while_waiting{};
    news_.wait_for(guard, 50ms);
  }
}

/// Throws the failure of a node, if there is one. \pre locked
void roll_call::throw_fault() const {
  for (const bool is_loss : {false, true})
    for (const auto& one : nodes_)
      if (!one.fault.empty() && one.is_loss == is_loss) {
        if (one.lasts)
          throw lasting_refusal{one.fault};
        throw node_failure{one.fault, is_loss};
      }
}

// The fastest answer gives the best estimate, so several probes are sent.
void roll_call::ask_for_clocks() {
  const auto here = this_machine();
  std::unique_lock guard{lock_};
  for (auto& one : nodes_) {
    const bool shares_clock = !here.empty() && one.facts.machine == here;
    for (int i = 1; !shares_clock && i <= probes && one.fault.empty(); ++i) {
      const auto now = wall_clock::steady();
      one.probes.insert(now);
      one.line->send(mail::clock_probe{now, 0});
      news_.wait_for(guard, 100ms, [&] { return !one.probes.contains(now); });
    }
  }
}

std::vector<node_identity> roll_call::identities() const {
  const std::lock_guard guard{lock_};
  std::vector<node_identity> result;
  for (const auto& one : nodes_)
    result.push_back(one.identity);
  return result;
}

nanoseconds roll_call::time_on(int number, nanoseconds here) const {
  const std::lock_guard guard{lock_};
  return here + at(number).offset;
}

nanoseconds roll_call::clock_doubt() const {
  const std::lock_guard guard{lock_};
  nanoseconds most = 0;
  for (const auto& one : nodes_)
    most = std::max(most, one.best_round_trip / 2);
  return 2 * most;
}

void roll_call::begin(notice_board& board) {
  const std::lock_guard guard{lock_};
  board_ = &board;
  for (const auto& one : nodes_)
    if (!one.fault.empty()) {
      has_lost_ = true;
      board.post_failure(one.fault);
    }
}

/// Turns a report into a failure. Nodes whose link never existed cannot reach each
/// other; the end of an existing link is a loss. \pre locked
void roll_call::confirm_suspicion() {
  const auto suspected = *std::exchange(suspected_, {});
  if (is_node(suspected.of) && at(suspected.of).gone)
    return; // that node's failure has been reported
  auto& by = at(suspected.by);
  fail(by, suspected.why, board_ != nullptr || by.how_far >= step::connected);
}

void roll_call::keep_watch() {
  std::unique_lock guard{lock_};
  const auto period = std::clamp(timeout_ / 5, 10ms, 250ms);
  awake_time watched{nanoseconds_of(2 * period)};
  (void)watched.look(wall_clock::steady());
  while (!news_.wait_for(guard, period, [this] { return stopping_; })) {
    const auto now = wall_clock::steady();
    const auto awake = watched.look(now);
    for (auto& one : nodes_) {
      if (!one.line || one.gone)
        continue;
      one.line->send(mail::beat{});
      if (one.silent.look(now, one.heard, awake) > nanoseconds_of(timeout_))
        fail(one,
             loss_of(one, "it has said nothing for " + std::to_string(timeout_.count())
                            + " ms"),
             true);
    }
    if (suspected_ && (suspected_->patience -= awake) < 0)
      confirm_suspicion();
    news_.notify_all();
  }
}

stall_rule::verdict roll_call::look() const {
  const std::lock_guard guard{lock_};
  return std::ranges::min_element(nodes_, {}, &node::verdict)->verdict;
}

std::string roll_call::at_work() const {
  const std::lock_guard guard{lock_};
  std::string result;
  for (const auto& one : nodes_)
    result += one.at_work;
  return result;
}

std::vector<mail::node_report> roll_call::end() {
  std::vector<mail::node_report> result;
  if (!watch_.joinable())
    return result;
  {
    const std::lock_guard guard{lock_};
    ending_ = true;
  }
  tell_all(mail::end_run{});
  {
    std::unique_lock guard{lock_};
    const bool ran = std::exchange(board_, nullptr) != nullptr;
    const auto reported = [this] {
      return std::ranges::all_of(nodes_, [](const node& n) {
        return n.report || n.gone || !n.line || !n.fault.empty();
      });
    };
    if (ran)
      news_.wait_for(guard, std::max(timeout_, 500ms), reported);
    stopping_ = true;
  }
  news_.notify_all();
  watch_.join();
  for (auto& one : nodes_) {
    if (one.line)
      one.line->close();
    if (one.report)
      result.push_back(std::move(*one.report));
  }
  return result;
}

bool roll_call::is_gone(int number) const {
  const std::lock_guard guard{lock_};
  return at(number).gone;
}

bool roll_call::has_lost() const {
  const std::lock_guard guard{lock_};
  return has_lost_;
}

} // namespace troupe
