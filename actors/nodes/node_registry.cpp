// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/node_registry.hpp"

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

node_registry::node_registry(std::vector<std::string> names,
                             std::chrono::milliseconds failure_timeout,
                             std::function<void(const std::string&)> on_wait)
  : timeout_(failure_timeout), on_wait_(std::move(on_wait)), nodes_(names.size()) {
  for (std::size_t i = 0; i < names.size(); ++i)
    nodes_[i].name = std::move(names[i]);
  watch_ = start_thread(1, [this] { keep_watch(); });
}

node_registry::~node_registry() {
  (void)end();
}

void node_registry::add(int number, std::shared_ptr<control_line> line) {
  const std::lock_guard guard{lock_};
  member_at(number).last_message = wall_clock::steady();
  member_at(number).line = std::move(line);
}

void node_registry::note(int number) {
  const std::lock_guard guard{lock_};
  member_at(number).last_message = wall_clock::steady();
  member_at(number).answered = true;
}

/// Handles a node's message, by type.
struct node_registry::reading {
  node_registry& owner;
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
    owner.fail(from, from.name + (m.leaves ? " is lost: " : ": ") + m.why, m.leaves);
  }
  void operator()(mail::node_status& m) {
    if (owner.on_wait_)
      owner.on_wait_(from.name + " " + m.doing);
  }
  void operator()(mail::beat& m) {
    from.verdict = static_cast<stall_rule::verdict>(std::clamp(m.verdict, 0, 2));
    from.at_work = std::move(m.at_work);
  }
  void operator()(mail::node_report& m) { from.report = std::move(m); }
  void operator()(mail::lost_node& m) { owner.suspect(number, m); }

  void operator()(mail::clock_probe& m) {
    if (from.probes.erase(m.leader_time) == 0)
      return; // it has been answered
    const auto round_trip = from.last_message - m.leader_time;
    if (round_trip < 0
        || (from.best_round_trip >= 0 && round_trip >= from.best_round_trip))
      return;
    from.best_round_trip = round_trip;
    from.offset = m.node_time - (m.leader_time + from.last_message) / 2;
  }

  /// Checks that steps come one after another, each once.
  bool comes_to(step next) {
    const bool follows = static_cast<int>(next) == static_cast<int>(from.progress) + 1;
    if (follows)
      from.progress = next;
    else
      owner.fail(from, from.name + " repeated a message about its progress", true);
    return follows;
  }

  template <class Other> // a message that no node sends
  void operator()(Other&) {
    owner.fail(from, from.name + " sent a message that only a leader sends", true);
  }
};

void node_registry::receive(int number, wire::node_message message) {
  {
    const std::lock_guard guard{lock_};
    member_at(number).last_message = wall_clock::steady();
    member_at(number).answered = true;
    std::visit(reading{*this, number, member_at(number)}, message);
  }
  news_.notify_all();
}

/// Records a failure of a node; the first failure counts. \pre locked
void node_registry::fail(node& member, const std::string& why, bool is_lost) {
  member.gone = member.gone || is_lost;
  if (!member.fault.empty() || ending_)
    return;
  member.fault = why;
  member.is_loss = is_lost && member.answered;
  if (status_ == nullptr)
    return;
  has_lost_ = has_lost_ || is_lost;
  status_->post_failure(why);
}

namespace {

/// The reason of one end of a link, with names of both ends for a reader elsewhere.
/// \param why "it" or "its" at the beginning is the other end, "this side" the
/// reporting end
std::string with_names(std::string why, const std::string& reporter,
                       const std::string& other) {
  if (why.starts_with("it "))
    why.replace(0, 2, other);
  else if (why.starts_with("its "))
    why.replace(0, 3, other + "'s");
  constexpr std::string_view reporting_end = "this side";
  if (const auto begin = why.find(reporting_end); begin != std::string::npos)
    why.replace(begin, reporting_end.size(), reporter);
  return why;
}

} // namespace

/// Notes that the link between a node and the leader or another node is lost. If the
/// other node is gone, its control line ends as well. The report waits for that end, so
/// that the right node is named. \pre locked
/// \param by_leader whether the leader reports on `reporter`, and not the reverse
void node_registry::suspect(int reporter, const mail::lost_node& report,
                            bool by_leader) {
  // The side that ended a line reports the reason; the other side sees only the end.
  const bool says_more =
    suspected_ && suspected_->is_only_end && report.why != line_end;
  if (ending_ || (suspected_ && !says_more))
    return;
  const auto& name = member_at(reporter).name;
  const auto other =
    is_node(report.node) ? member_at(report.node).name : std::string{"the leader"};
  suspected_ = {reporter, report.node,
                "the link between " + name + " and " + other + " is broken: "
                  + (by_leader ? with_names(report.why, other, name)
                               : with_names(report.why, name, other)),
                report.why == line_end, nanoseconds_of(std::min(timeout_, 1000ms))};
}

/// Returns the error text for a node. A process that has never answered may be no node.
std::string node_registry::loss_of(const node& member, const std::string& why) {
  if (member.answered)
    return member.name + " is lost: " + why;
  if (why == expects_tls)
    return member.name + ": " + why;
  return member.name + ": " + why
         + "; perhaps --tls is given only on one side, versions of troupe differ, or "
           "the "
           "address is of another program";
}

void node_registry::lose(int number, const std::string& why, bool is_link) {
  {
    const std::lock_guard guard{lock_};
    auto& member = member_at(number);
    if (is_link && ending_)
      return;
    if (is_link) // the node's own line may give the reason
      return suspect(number, {0, why}, true);
    fail(member,
         loss_of(member,
                 why + (why == closed_line && !member.answered ? before_anything : "")),
         true);
  }
  news_.notify_all();
}

void node_registry::send(int number, const wire::node_message& message) {
  const std::lock_guard guard{lock_};
  if (member_at(number).line && !member_at(number).gone)
    member_at(number).line->send(message);
}

void node_registry::send_all(const wire::node_message& message) {
  for (int number = 1; number <= std::ssize(nodes_); ++number)
    send(number, message);
}

void node_registry::await(step progress, const std::atomic<bool>* interrupted,
                          std::optional<int> number) {
  std::unique_lock guard{lock_};
  const auto has_reached = [&](const node& n) { return n.progress >= progress; };
  while (number ? !has_reached(member_at(*number))
                : !std::ranges::all_of(nodes_, has_reached)) {
    throw_fault();
    if (interrupted != nullptr && interrupted->load())
      throw ended_while_waiting{};
    news_.wait_for(guard, 50ms);
  }
}

/// Throws the failure of a node, if there is one. \pre locked
void node_registry::throw_fault() const {
  for (const bool is_loss : {false, true})
    for (const auto& member : nodes_)
      if (!member.fault.empty() && member.is_loss == is_loss) {
        if (member.lasts)
          throw lasting_refusal{member.fault};
        throw node_failure{member.fault, is_loss};
      }
}

// The fastest answer gives the best estimate, so several probes are sent.
void node_registry::probe_clocks() {
  const auto local_machine = this_machine();
  std::unique_lock guard{lock_};
  for (auto& member : nodes_) {
    const bool shares_clock =
      !local_machine.empty() && member.facts.machine == local_machine;
    for (int i = 1; !shares_clock && i <= probes && member.fault.empty(); ++i) {
      const auto now = wall_clock::steady();
      member.probes.insert(now);
      member.line->send(mail::clock_probe{now, 0});
      news_.wait_for(guard, 100ms, [&] { return !member.probes.contains(now); });
    }
  }
}

std::vector<node_identity> node_registry::identities() const {
  const std::lock_guard guard{lock_};
  std::vector<node_identity> result;
  for (const auto& member : nodes_)
    result.push_back(member.identity);
  return result;
}

nanoseconds node_registry::time_on(int number, nanoseconds local_time) const {
  const std::lock_guard guard{lock_};
  return local_time + member_at(number).offset;
}

nanoseconds node_registry::clock_doubt() const {
  const std::lock_guard guard{lock_};
  nanoseconds most = 0;
  for (const auto& member : nodes_)
    most = std::max(most, member.best_round_trip / 2);
  return 2 * most;
}

void node_registry::begin(run_status& status) {
  const std::lock_guard guard{lock_};
  status_ = &status;
  for (const auto& member : nodes_)
    if (!member.fault.empty()) {
      has_lost_ = true;
      status.post_failure(member.fault);
    }
}

/// Turns a report into a failure. Nodes whose link never existed cannot reach each
/// other; the end of an existing link is a loss. \pre locked
void node_registry::confirm_suspicion() {
  const auto suspected = *std::exchange(suspected_, {});
  if (is_node(suspected.suspect_node) && member_at(suspected.suspect_node).gone)
    return; // that node's failure has been reported
  auto& reporter = member_at(suspected.reporter);
  fail(reporter, suspected.why,
       status_ != nullptr || reporter.progress >= step::connected);
}

void node_registry::keep_watch() {
  std::unique_lock guard{lock_};
  const auto period = std::clamp(timeout_ / 5, 10ms, 250ms);
  awake_time watched{nanoseconds_of(2 * period)};
  (void)watched.look(wall_clock::steady());
  while (!news_.wait_for(guard, period, [this] { return stopping_; })) {
    const auto now = wall_clock::steady();
    const auto awake = watched.look(now);
    for (auto& member : nodes_) {
      if (!member.line || member.gone)
        continue;
      member.line->send(mail::beat{});
      if (member.silent.look(now, member.last_message, awake)
          > nanoseconds_of(timeout_))
        fail(member,
             loss_of(member, "it has sent nothing for "
                               + std::to_string(timeout_.count()) + " ms"),
             true);
    }
    if (suspected_ && (suspected_->remaining_time -= awake) < 0)
      confirm_suspicion();
    news_.notify_all();
  }
}

stall_rule::verdict node_registry::look() const {
  const std::lock_guard guard{lock_};
  return std::ranges::min_element(nodes_, {}, &node::verdict)->verdict;
}

std::string node_registry::at_work() const {
  const std::lock_guard guard{lock_};
  std::string result;
  for (const auto& member : nodes_)
    result += member.at_work;
  return result;
}

std::vector<mail::node_report> node_registry::end() {
  std::vector<mail::node_report> result;
  if (!watch_.joinable())
    return result;
  {
    const std::lock_guard guard{lock_};
    ending_ = true;
  }
  send_all(mail::end_run{});
  {
    std::unique_lock guard{lock_};
    const bool ran = std::exchange(status_, nullptr) != nullptr;
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
  for (auto& member : nodes_) {
    if (member.line)
      member.line->close();
    if (member.report)
      result.push_back(std::move(*member.report));
  }
  return result;
}

bool node_registry::is_gone(int number) const {
  const std::lock_guard guard{lock_};
  return member_at(number).gone;
}

bool node_registry::has_lost() const {
  const std::lock_guard guard{lock_};
  return has_lost_;
}

} // namespace troupe
