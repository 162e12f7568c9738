// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/worker.hpp"

#include "actors/mail/thrown.hpp"
#include "actors/nodes/gpus_of_nodes.hpp"
#include "actors/nodes/layer_values.hpp"
#include "actors/nodes/node_maps.hpp"
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

constexpr auto connect_timeout = 15s; // until all nodes of a run have connected
constexpr int most_probes = 1024;     // of the clock, in a run; leaders send 32

milliseconds milliseconds_of(nanoseconds t) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::nanoseconds{t});
}

/// This node's owner ends the node.
struct ended_by_owner {};

/// Another node of the run does not answer.
struct unreachable : std::runtime_error {
  unreachable(int number, const std::string& why)
    : std::runtime_error(why), node(number) {
    // nop
  }
  int node;
};

} // namespace

worker::worker(const worker_services& services, mail::prepare request,
               std::shared_ptr<control_line> leader)
  : services_(services),
    facts_(std::move(request)),
    session_{facts_.session, facts_.generation},
    leader_(std::move(leader)),
    last_leader_message_(wall_clock::steady()) {
  beats_ = start_thread(1, [this] { beat(); });
}

worker::~worker() {
  {
    const std::lock_guard guard{lock_};
    is_done_ = true;
  }
  news_.notify_all();
  beats_.join();
  router_.reset();
  for (const auto& [node, line] : lines_)
    line->close();
}

std::string worker::description() const {
  return "executes ranks of a run as node " + std::to_string(facts_.node) + " of "
         + std::to_string(facts_.nodes.size());
}

/// Sends beats with the state of this node's devices, and detects a silent leader.
void worker::beat() {
  const auto timeout = milliseconds_of(facts_.failure_timeout);
  constexpr int leader_timeouts = 6; // timeouts
  const auto period = std::clamp(timeout / 5, 10ms, 250ms);
  awake_time watched{std::chrono::nanoseconds{2 * period}.count()};
  silence leader_silence;
  (void)watched.look(wall_clock::steady());
  std::unique_lock guard{lock_};
  while (!news_.wait_for(guard, period, [this] { return is_done_; })) {
    mail::beat message;
    if (local_run_ != nullptr) {
      message.verdict = static_cast<int>(local_run_->watch().look());
      message.at_work = local_run_->watch().at_work();
    }
    leader_->send(message);
    const auto now = wall_clock::steady();
    if (leader_silence.look(now, last_leader_message_, watched.look(now))
          / leader_timeouts
        > facts_.failure_timeout)
      lose_leader();
  }
}

void worker::handle(control_frame frame) {
  last_leader_message_ = wall_clock::steady();
  if (frame.type == control_frame::kind::actors) {
    std::shared_ptr<message_router> router;
    {
      const std::lock_guard guard{lock_};
      router = router_;
    }
    if (router)
      router->handle(0, frame);
    return;
  }
  auto message = wire::decode_node_message(frame.text);
  if (!message)
    return lose_leader();
  if (auto* const probe = std::get_if<mail::clock_probe>(&*message)) {
    if (++probes_ > most_probes)
      return lose_leader();
    return leader_->send(mail::clock_probe{probe->leader_time, wall_clock::steady()});
  }
  if (!std::holds_alternative<mail::beat>(*message))
    receive_queue_.put(std::move(*message));
}

void worker::lose_leader() {
  leader_lost_ = true;
  receive_queue_.put(leader_lost{});
}

/// Returns the next message of the leader; absent if none comes within `timeout`.
std::optional<wire::node_message> worker::next(milliseconds timeout) {
  if (stop_ != nullptr && stop_->load())
    throw ended_by_owner{};
  auto entry = receive_queue_.take(timeout);
  if (!entry)
    return {};
  if (std::holds_alternative<leader_lost>(*entry))
    throw leader_lost{};
  return std::get<wire::node_message>(std::move(*entry));
}

/// Waits for the leader's next message, which must be of this type. \throws leader_lost
/// on any other message, and if the run has ended
template <class Message>
Message worker::await() {
  for (;;)
    if (auto message = next(100ms)) {
      if (auto* const matching = std::get_if<Message>(&*message))
        return std::move(*matching);
      throw leader_lost{};
    }
}

bool worker::expects(const greeting& hello) const {
  return hello.session == session_.session && hello.generation == session_.generation
         && static_cast<int>(hello.from) < facts_.node
         && (hello.from > 0 || hello.intent == greeting::purpose::tensors);
}

std::shared_ptr<control_line> worker::line_to(int node,
                                              std::unique_ptr<byte_stream> stream) {
  return services_.connections->line(
    std::move(stream),
    {.received =
       [node, mail = std::weak_ptr{router_}](const control_frame& frame) {
         const auto open = mail.lock();
         if (open && frame.type == control_frame::kind::actors)
           open->handle(node, frame);
       },
     .ended = [this, node](
                const std::string& why) { lose(node, why.empty() ? line_end : why); }});
}

void worker::join(const greeting& hello, std::unique_ptr<byte_stream> stream) {
  const std::lock_guard guard{lock_};
  const int node = static_cast<int>(hello.from);
  if (!router_ || !joined_.insert({node, hello.intent}).second)
    return; // one connection of each kind per node
  if (hello.intent == greeting::purpose::tensors)
    router_->add(node, std::move(stream));
  else
    router_->add(node, lines_[node] = line_to(node, std::move(stream)));
  news_.notify_all();
}

/// Connects to the nodes of higher numbers, and waits for the connections of all
/// others.
void worker::join_others() {
  greeting hello{.session = session_.session,
                 .generation = session_.generation,
                 .from = static_cast<std::uint32_t>(facts_.node)};
  const auto timeout = std::chrono::duration_cast<milliseconds>(connect_timeout);
  for (int node = facts_.node + 1; node <= static_cast<int>(facts_.nodes.size());
       ++node) {
    const auto where = parse_address(facts_.nodes[static_cast<std::size_t>(node) - 1]);
    if (!where)
      throw std::runtime_error(where.error());
    for (const auto purpose :
         {greeting::purpose::control, greeting::purpose::tensors}) {
      hello.intent = purpose;
      auto stream = services_.connections->greet(*where, hello, timeout);
      if (!stream)
        throw unreachable{node, stream.error()};
      const std::lock_guard guard{lock_};
      if (purpose == greeting::purpose::tensors)
        router_->add(node, std::move(*stream));
      else
        router_->add(node, lines_[node] = line_to(node, std::move(*stream)));
    }
  }
  const int expected = 2 * (facts_.node - 1) + 1;
  std::unique_lock guard{lock_};
  const auto until = std::chrono::steady_clock::now() + timeout;
  const auto all_are_here = [&] { return std::ssize(joined_) >= expected; };
  while (!news_.wait_for(guard, 100ms, all_are_here)
         && std::chrono::steady_clock::now() < until)
    if (leader_lost_)
      throw leader_lost{};
  if (!all_are_here())
    throw std::runtime_error("not all nodes of the run could reach the node at "
                             + facts_.nodes[static_cast<std::size_t>(facts_.node) - 1]);
}

void worker::lose(int node, const std::string& why) {
  leader_->send(mail::lost_node{node, why});
}

void worker::run(const std::atomic<bool>* stop) {
  stop_ = stop;
  try {
    auto plan = services_.plan(facts_);
    if (!plan)
      return leader_->send(mail::refused{.why = plan.error(), .lasts = true});
    layers_.emplace(facts_).apply_to(*plan);
    const auto shared = std::make_shared<const run_plan>(std::move(*plan));
    {
      const std::lock_guard guard{lock_};
      router_ = std::make_shared<message_router>(
        shared, facts_.node_map, facts_.node, session_,
        [this](int node, const std::string& why) { lose(node, why); });
      router_->add(0, leader_);
      router_->receive_layers(*layers_);
    }
    const auto ranks = ranks_at(facts_.node_map, facts_.node);
    leader_->send(facts_of_part(*shared, ranks));
    const auto groups = await<mail::connect>().groups;
    if (const auto fault = group_error(*shared, ranks, groups); !fault.empty())
      throw std::runtime_error{fault};
    join_others();
    leader_->send(mail::connected{new_local_ids(*shared, ranks, groups)});
    const auto ids = await<mail::build>().ids;
    if (ids.size() != groups.size())
      throw std::runtime_error{"the leader sent groups of GPUs without their ids"};
    known_groups of_groups;
    for (std::size_t i = 0; i < ids.size(); ++i)
      of_groups.ids[groups[i]] = ids[i];
    router_->set_groups(of_groups);
    while (!layers_->complete(100ms))
      if (next(0ms))
        throw leader_lost{};
    perform(shared, std::move(of_groups));
  } catch (const leader_lost&) { // NOLINT(bugprone-empty-catch)
  } catch (const ended_by_owner&) {
    leader_->send(mail::refused{"a user ended the node", true});
  } catch (const unreachable& error) { // the leader decides whether that node is lost
    lose(error.node, error.what());
  } catch (...) { // also of a user's objects
    leader_->send(mail::refused{text_of(std::current_exception())});
  }
}

/// Makes a local run visible to beats during the object's life.
class worker::visible_run {
public:
  visible_run(worker& owner, local_run& local) : owner_(owner) {
    const std::lock_guard guard{owner_.lock_};
    owner_.local_run_ = &local;
  }
  ~visible_run() {
    const std::lock_guard guard{owner_.lock_};
    owner_.local_run_ = nullptr;
  }
  visible_run(const visible_run&) = delete;
  visible_run& operator=(const visible_run&) = delete;

private:
  worker& owner_;
};

std::unique_ptr<local_run, end_or_leave>
worker::make_ensemble(const std::shared_ptr<const run_plan>& plan,
                      known_groups groups) {
  const auto is_over = [this] { return leader_lost_ || (stop_ != nullptr && *stop_); };
  try {
    return std::unique_ptr<local_run, end_or_leave>{
      new local_run{plan,
                    {.ranks = ranks_at(facts_.node_map, facts_.node),
                     .leads = false,
                     .make_remote_actors = router_->maker(),
                     .groups = std::move(groups),
                     .ended = is_over}}};
  } catch (const ended_while_joining&) {
    (void)next(0ms); // throws the reason
    throw;
  }
}

void worker::perform(const std::shared_ptr<const run_plan>& plan, known_groups groups) {
  const auto local = make_ensemble(plan, std::move(groups));
  layers_->forget();
  try {
    local->gather();
    local->watch().watch_here();
    router_->open(*local);
    const visible_run to_beats{*this, *local};
    leader_->send(mail::ready{});
    const auto begins = await<mail::start_run>();
    local->clock().restart_at(begins.start);
    // Threads start only now: other nodes may already send messages that start work
    // here.
    local->runtime().start_threads(
      std::clamp(plan->machine.threads, 1,
                 static_cast<int>(ranks_at(facts_.node_map, facts_.node).size())));
    local->begin();
    work(*local);
  } catch (...) {
    shut_down(*local);
    throw;
  }
  auto report = report_of(local->resources(), local->meter());
  shut_down(*local);
  report.stale_frames = router_->stale();
  leader_->send(report);
}

void worker::shut_down(local_run& local) {
  router_->close_after_actors(local);
  if (!local.at_work())
    return;
  const std::lock_guard guard{abandoned_lock_};
  abandoned_.push_back(router_); // the run may use buffers of the router
}

/// Handles messages until the leader ends the run.
void worker::work(local_run& local) {
  bool has_reported = false;
  for (;;) {
    std::optional<wire::node_message> message;
    {
      const run_monitor::waiting counted{local.watch()};
      message = next(20ms);
    }
    if (message && !answer(local, *message))
      return;
    if (local.watch().broken())
      local.status().post_failure("out of memory");
    const auto failure = local.status().failure();
    if (failure && !std::exchange(has_reported, true))
      leader_->send(control_frame{
        control_frame::kind::actors, session_.generation,
        wire::encode(wire::addressed_message{{}, mail::failed{*failure}, {}})});
  }
}

/// Handles a message of the leader. Returns false if the run has ended.
bool worker::answer(local_run& local, const wire::node_message& message) {
  if (std::holds_alternative<mail::pause_clock>(message))
    local.clock().pause();
  else if (std::holds_alternative<mail::resume_clock>(message))
    local.clock().resume();
  else
    return false;
  return true;
}

std::mutex worker::abandoned_lock_;
std::vector<std::shared_ptr<message_router>> worker::abandoned_;

} // namespace troupe
