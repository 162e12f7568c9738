// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/player.hpp"

#include "actors/nodes/gpus_of_nodes.hpp"
#include "actors/nodes/layer_values.hpp"
#include "actors/nodes/node_places.hpp"
#include "actors/nodes/this_machine.hpp"
#include "actors/run/awake_time.hpp"
#include "actors/run/run_result.hpp"
#include "kernels/threads.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

constexpr auto patience_with_others = 15s; // until all nodes of a run have connected
constexpr int most_probes = 1024;          // of the clock, in a run; leaders send 32

milliseconds milliseconds_of(nanoseconds t) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::nanoseconds{t});
}

/// This node's owner ends the node.
struct told_to_end {};

/// Another node of the run does not answer.
struct unreachable : std::runtime_error {
  unreachable(int number, const std::string& why)
    : std::runtime_error(why), node(number) {
    // nop
  }
  int node;
};

} // namespace

player::player(const player_means& means, mail::prepare begins,
               std::shared_ptr<control_line> lead)
  : means_(means),
    facts_(std::move(begins)),
    session_{facts_.session, facts_.generation},
    lead_(std::move(lead)),
    heard_lead_(wall_clock::steady()) {
  beats_ = start_thread(1, [this] { beat(); });
}

player::~player() {
  {
    const std::lock_guard guard{lock_};
    over_ = true;
  }
  news_.notify_all();
  beats_.join();
  mail_.reset();
  for (const auto& [node, line] : lines_)
    line->close();
}

std::string player::description() const {
  return "plays ranks of a run as node " + std::to_string(facts_.node) + " of "
         + std::to_string(facts_.nodes.size());
}

/// Sends beats with the state of this node's devices, and detects a silent leader.
void player::beat() {
  const auto timeout = milliseconds_of(facts_.failure_timeout);
  constexpr int patience_with_lead = 6; // timeouts
  const auto period = std::clamp(timeout / 5, 10ms, 250ms);
  awake_time watched{std::chrono::nanoseconds{2 * period}.count()};
  silence of_lead;
  (void)watched.look(wall_clock::steady());
  std::unique_lock guard{lock_};
  while (!news_.wait_for(guard, period, [this] { return over_; })) {
    mail::beat one;
    if (here_ != nullptr) {
      one.verdict = static_cast<int>(here_->watch().look());
      one.at_work = here_->watch().at_work();
    }
    lead_->send(one);
    const auto now = wall_clock::steady();
    if (of_lead.look(now, heard_lead_, watched.look(now)) / patience_with_lead
        > facts_.failure_timeout)
      lose_lead();
  }
}

void player::hear(control_frame frame) {
  heard_lead_ = wall_clock::steady();
  if (frame.what == control_frame::kind::actors) {
    std::shared_ptr<mailroom> mail;
    {
      const std::lock_guard guard{lock_};
      mail = mail_;
    }
    if (mail)
      mail->hear(0, frame);
    return;
  }
  auto what = wire::decode_node_mail(frame.text);
  if (!what)
    return lose_lead();
  if (auto* const probe = std::get_if<mail::clock_probe>(&*what)) {
    if (++probes_ > most_probes)
      return lose_lead();
    return lead_->send(mail::clock_probe{probe->lead, wall_clock::steady()});
  }
  if (!std::holds_alternative<mail::beat>(*what))
    inbox_.put(std::move(*what));
}

void player::lose_lead() {
  lead_gone_ = true;
  inbox_.put(lead_lost{});
}

/// Returns the next message of the leader; absent if none comes within `timeout`.
std::optional<wire::node_mail> player::next(milliseconds patience) {
  if (stop_ != nullptr && stop_->load())
    throw told_to_end{};
  auto one = inbox_.take(patience);
  if (!one)
    return {};
  if (std::holds_alternative<lead_lost>(*one))
    throw lead_lost{};
  return std::get<wire::node_mail>(std::move(*one));
}

/// Waits for the leader's next message, which must be of this type. \throws leader_lost
/// on any other message, and if the run has ended
template <class Message>
Message player::await() {
  for (;;)
    if (auto what = next(100ms)) {
      if (auto* const found = std::get_if<Message>(&*what))
        return std::move(*found);
      throw lead_lost{};
    }
}

bool player::expects(const greeting& guest) const {
  return guest.session == session_.session && guest.generation == session_.generation
         && static_cast<int>(guest.from) < facts_.node
         && (guest.from > 0 || guest.what == greeting::purpose::tensors);
}

std::shared_ptr<control_line> player::line_to(int node,
                                              std::unique_ptr<byte_stream> stream) {
  return means_.by->line(
    std::move(stream),
    {.heard =
       [node, mail = std::weak_ptr{mail_}](const control_frame& frame) {
         const auto open = mail.lock();
         if (open && frame.what == control_frame::kind::actors)
           open->hear(node, frame);
       },
     .ended = [this, node](
                const std::string& why) { lose(node, why.empty() ? line_end : why); }});
}

void player::join(const greeting& guest, std::unique_ptr<byte_stream> stream) {
  const std::lock_guard guard{lock_};
  const int node = static_cast<int>(guest.from);
  if (!mail_ || !joined_.insert({node, guest.what}).second)
    return; // one connection of each kind per node
  if (guest.what == greeting::purpose::tensors)
    mail_->add(node, std::move(stream));
  else
    mail_->add(node, lines_[node] = line_to(node, std::move(stream)));
  news_.notify_all();
}

/// Connects to the nodes of higher numbers, and waits for the connections of all
/// others.
void player::join_others() {
  greeting hello{.session = session_.session,
                 .generation = session_.generation,
                 .from = static_cast<std::uint32_t>(facts_.node)};
  const auto patience = std::chrono::duration_cast<milliseconds>(patience_with_others);
  for (int node = facts_.node + 1; node <= static_cast<int>(facts_.nodes.size());
       ++node) {
    const auto where = parse_address(facts_.nodes[static_cast<std::size_t>(node) - 1]);
    if (!where)
      throw std::runtime_error(where.error());
    for (const auto what : {greeting::purpose::control, greeting::purpose::tensors}) {
      hello.what = what;
      auto stream = means_.by->greet(*where, hello, patience);
      if (!stream)
        throw unreachable{node, stream.error()};
      const std::lock_guard guard{lock_};
      if (what == greeting::purpose::tensors)
        mail_->add(node, std::move(*stream));
      else
        mail_->add(node, lines_[node] = line_to(node, std::move(*stream)));
    }
  }
  const int expected = 2 * (facts_.node - 1) + 1;
  std::unique_lock guard{lock_};
  const auto until = std::chrono::steady_clock::now() + patience;
  const auto all_are_here = [&] { return std::ssize(joined_) >= expected; };
  while (!news_.wait_for(guard, 100ms, all_are_here)
         && std::chrono::steady_clock::now() < until)
    if (lead_gone_)
      throw lead_lost{};
  if (!all_are_here())
    throw std::runtime_error("not all nodes of the run could reach this one at "
                             + facts_.nodes[static_cast<std::size_t>(facts_.node) - 1]);
}

void player::lose(int node, const std::string& why) {
  lead_->send(mail::lost_node{node, why});
}

void player::play(const std::atomic<bool>* stop) {
  stop_ = stop;
  try {
    auto plan = means_.plan(facts_);
    if (!plan)
      return lead_->send(mail::refused{.why = plan.error(), .lasts = true});
    layers_.emplace(facts_).give_to(*plan);
    const auto shared = std::make_shared<const run_plan>(std::move(*plan));
    {
      const std::lock_guard guard{lock_};
      mail_ = std::make_shared<mailroom>(
        shared, facts_.places, facts_.node, session_,
        [this](int node, const std::string& why) { lose(node, why); });
      mail_->add(0, lead_);
      mail_->take_layers(*layers_);
    }
    const auto ranks = ranks_at(facts_.places, facts_.node);
    lead_->send(facts_of_part(*shared, ranks));
    const auto groups = await<mail::connect>().groups;
    if (const auto fault = fault_of_groups(*shared, ranks, groups); !fault.empty())
      throw std::runtime_error{fault};
    join_others();
    lead_->send(mail::connected{ids_of_own(*shared, ranks, groups)});
    const auto ids = await<mail::build>().ids;
    if (ids.size() != groups.size())
      throw std::runtime_error{"it was told of groups of GPUs without their ids"};
    known_groups of_groups;
    for (std::size_t i = 0; i < ids.size(); ++i)
      of_groups.ids[groups[i]] = ids[i];
    mail_->know(of_groups);
    while (!layers_->complete(100ms))
      if (next(0ms))
        throw lead_lost{};
    perform(shared, std::move(of_groups));
  } catch (const lead_lost&) { // NOLINT(bugprone-empty-catch)
  } catch (const told_to_end&) {
    lead_->send(mail::refused{"it was told to end", true});
  } catch (const unreachable& wrong) { // the leader decides whether that node is lost
    lose(wrong.node, wrong.what());
  } catch (const std::bad_alloc&) {
    lead_->send(mail::refused{"out of memory"});
  } catch (const std::exception& wrong) {
    lead_->send(mail::refused{wrong.what()});
  }
}

/// Makes a local run visible to beats during the object's life.
class player::shown {
public:
  shown(player& whose, ensemble& what) : whose_(whose) {
    const std::lock_guard guard{whose_.lock_};
    whose_.here_ = &what;
  }
  ~shown() {
    const std::lock_guard guard{whose_.lock_};
    whose_.here_ = nullptr;
  }
  shown(const shown&) = delete;
  shown& operator=(const shown&) = delete;

private:
  player& whose_;
};

std::unique_ptr<ensemble, end_or_leave>
player::make_ensemble(const std::shared_ptr<const run_plan>& plan,
                      known_groups groups) {
  const auto is_over = [this] { return lead_gone_ || (stop_ != nullptr && *stop_); };
  try {
    return std::unique_ptr<ensemble, end_or_leave>{
      new ensemble{plan,
                   {.ranks = ranks_at(facts_.places, facts_.node),
                    .leads = false,
                    .elsewhere = mail_->maker(),
                    .groups = std::move(groups),
                    .ended = is_over}}};
  } catch (const ended_while_joining&) {
    (void)next(0ms); // throws the reason
    throw;
  }
}

void player::perform(const std::shared_ptr<const run_plan>& plan, known_groups groups) {
  const auto here = make_ensemble(plan, std::move(groups));
  layers_->forget();
  try {
    here->gather();
    here->watch().watch_here();
    mail_->open(*here);
    const shown to_beats{*this, *here};
    lead_->send(mail::ready{});
    const auto begins = await<mail::begin_run>();
    here->clock().restart_at(begins.start);
    // Threads start only now: other nodes may already send messages that start work
    // here.
    here->house().start_threads(std::clamp(
      plan->threads, 1, static_cast<int>(ranks_at(facts_.places, facts_.node).size())));
    here->begin();
    work(*here);
  } catch (...) {
    come_home(*here);
    throw;
  }
  auto report = report_of(here->equipped(), here->meter());
  come_home(*here);
  report.stale_frames = mail_->stale();
  lead_->send(report);
}

void player::come_home(ensemble& here) {
  mail_->close_after_actors(here);
  if (here.at_work()) // the run may use buffers of the router
    left_.push_back(mail_);
}

/// Handles messages until the leader ends the run.
void player::work(ensemble& here) {
  bool told = false;
  for (;;) {
    std::optional<wire::node_mail> what;
    {
      const run_watch::waiting counted{here.watch()};
      what = next(20ms);
    }
    if (what && !answer(here, *what))
      return;
    if (here.watch().broken())
      here.board().post_failure("out of memory");
    const auto failure = here.board().failure();
    if (failure && !std::exchange(told, true))
      lead_->send(control_frame{
        control_frame::kind::actors, session_.generation,
        wire::encode(wire::addressed_mail{{}, mail::failed{*failure}, {}})});
  }
}

/// Handles a message of the leader. Returns false if the run has ended.
bool player::answer(ensemble& here, const wire::node_mail& what) {
  if (std::holds_alternative<mail::pause_clock>(what))
    here.clock().pause();
  else if (std::holds_alternative<mail::resume_clock>(what))
    here.clock().resume();
  else
    return false;
  return true;
}

std::vector<std::shared_ptr<mailroom>> player::left_;

} // namespace troupe
