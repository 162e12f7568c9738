// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/leader.hpp"

#include "actors/nodes/gpus_of_nodes.hpp"
#include "actors/nodes/layer_values.hpp"
#include "actors/nodes/node_maps.hpp"
#include "plan/stage_buckets.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

namespace {

/// "ranks 2, 3"
std::string text_of(const std::vector<int>& ranks) {
  std::string result;
  for (const int rank : ranks)
    result += (result.empty() ? "" : ", ") + std::to_string(rank);
  return (ranks.size() == 1 ? "rank " : "ranks ") + result;
}

} // namespace

leader::leader(const cluster& cluster_options, std::shared_ptr<const run_plan> plan,
               const run_description& description)
  : cluster_(cluster_options),
    plan_(std::move(plan)),
    node_map_(cluster_options.node_map.empty() ? default_node_map(*plan_, count())
                                               : cluster_options.node_map),
    session_(description.session),
    nodes_(std::make_unique<node_registry>(names(), cluster_options.failure_timeout,
                                           cluster_options.on_wait)),
    router_(std::make_unique<message_router>(
      plan_, node_map_, 0, session_, [this](int number, const std::string& why) {
        nodes_->lose(number, why, true);
      })) {
  try {
    using step = node_registry::step;
    reach_all();
    identify_all();
    prepare_all(description);
    link_all();
    const auto groups = groups_of_gpus();
    compare_facts();
    nodes_->send_all(mail::connect{groups});
    nodes_->await(step::connected, cluster_options.interrupted);
    collect_ids(groups);
    send_layers();
    mail::build build;
    for (const auto& [group, id] : groups_.ids)
      build.ids.push_back(id);
    nodes_->send_all(build);
    nodes_->await(step::ready, cluster_options.interrupted);
    nodes_->probe_clocks();
  } catch (...) {
    (void)leader::end();
    throw;
  }
}

leader::~leader() {
  (void)leader::end();
}

std::vector<std::string> leader::names() const {
  std::vector<std::string> result;
  for (int number = 1; number <= count(); ++number)
    result.push_back("node "
                     + to_string(cluster_.nodes[static_cast<std::size_t>(number) - 1])
                     + " (" + text_of(ranks_at(node_map_, number)) + ")");
  return result;
}

std::unique_ptr<byte_stream> leader::greet_node(int number,
                                                const greeting& hello) const {
  const auto& where = cluster_.nodes[static_cast<std::size_t>(number) - 1];
  auto stream = cluster_.connections->greet(where, hello,
                                            std::max(cluster_.failure_timeout, 1000ms));
  if (!stream)
    throw node_failure{stream.error(), hello.intent != greeting::purpose::leader};
  return std::move(*stream);
}

void leader::reach_all() {
  for (int number = 1; number <= count(); ++number) {
    auto line = cluster_.connections->line(
      greet_node(number, {.intent = greeting::purpose::leader,
                          .session = session_.session,
                          .generation = session_.generation}),
      {.received = [this, number](const control_frame& f) { handle(number, f); },
       .ended =
         [this, number](const std::string& why) {
           nodes_->lose(number, why.empty() ? closed_line : why);
         }});
    router_->add(number, line);
    nodes_->add(number, std::move(line));
  }
}

/// Asks all nodes for identities, and refuses two addresses of one node.
void leader::identify_all() {
  nodes_->send_all(mail::ask_identity{});
  nodes_->await(node_registry::step::known, cluster_.interrupted);
  if (const auto twins = twins_among(nodes_->identities()))
    throw nodes_differ{"--nodes names " + name_of(twins->first) + " and "
                       + name_of(twins->second)
                       + ", which are the same node: name the node once"};
}

/// Refuses nodes that differ in facts which decide the bits of the run. The leader's
/// own data is compared as well, because evaluations read that data.
void leader::compare_facts() {
  common_facts of_attempt;
  auto& known_facts = cluster_.facts != nullptr ? *cluster_.facts : of_attempt;
  auto error = known_facts.add("this command", facts_of_data(*plan_));
  for (int number = 1; number <= count() && error.empty(); ++number)
    error = known_facts.add("node " + name_of(number), nodes_->facts(number).facts);
  if (!error.empty())
    throw nodes_differ{error};
}

/// Asks one node after another to take part, and waits for each answer before the next
/// request.
void leader::prepare_all(const run_description& description) {
  auto request = facts(description);
  for (const int number : order_of(nodes_->identities())) {
    request.node = number;
    request.layers = layers_for(number);
    nodes_->send(number, request);
    nodes_->await(node_registry::step::prepared, cluster_.interrupted, number);
  }
}

/// Returns the groups of GPUs that exchange arrays directly.
std::vector<int> leader::groups_of_gpus() {
  std::vector<node_facts> reports;
  for (int number = 1; number <= count(); ++number)
    reports.push_back({name_of(number), nodes_->facts(number)});
  if (auto why = kind_error(reports); !why.empty())
    throw nodes_differ{why};
  auto chosen =
    choose_groups(*plan_, node_map_, reports, cluster_.connections->encrypts());
  groups_.exclusion = std::move(chosen.exclusion);
  return std::move(chosen.groups);
}

/// "a:4242"
std::string leader::name_of(int number) const {
  return to_string(cluster_.nodes[static_cast<std::size_t>(number) - 1]);
}

/// Collects the ids of groups; the node of a group's first member has made the id. Each
/// node sends ids in the order of groups.
void leader::collect_ids(const std::vector<int>& groups) {
  const auto candidates = exchanging_groups(*plan_);
  std::map<int, std::size_t> used; // ids used so far, by node
  for (const int group : groups) {
    const auto& first = candidates[static_cast<std::size_t>(group)].members.front();
    const int node = node_map_[static_cast<std::size_t>(plan_->rank_of(first))];
    const auto node_ids = nodes_->ids(node);
    const auto next = used[node]++;
    if (next >= node_ids.size())
      throw node_failure{"node " + name_of(node)
                         + " made fewer groups of GPUs than the leader requested"};
    groups_.ids[group] = node_ids[next];
  }
}

/// Connects the tensor links.
void leader::link_all() {
  for (int number = 1; number <= count(); ++number)
    router_->add(number, greet_node(number, {.intent = greeting::purpose::tensors,
                                             .session = session_.session,
                                             .generation = session_.generation,
                                             .from = 0}));
}

/// Returns the description of the run that all nodes receive.
mail::prepare leader::facts(const run_description& description) const {
  const auto& plan = *plan_;
  const auto& earlier = plan.work->earlier;
  mail::prepare result{.version = cluster_.version,
                       .session = session_.session,
                       .generation = session_.generation,
                       .node_map = node_map_,
                       .options = description.options,
                       .keep = {.record = plan.keep.record,
                                .first = plan.keep.first_actions,
                                .watched = plan.observed.watched,
                                .weights = plan.keep.weights,
                                .gradients = plan.keep.gradients,
                                .versions = plan.keep.versions,
                                .model_times = plan.observed.model_times,
                                .evaluate_every = plan.copies.evaluate_every,
                                .checkpoint_every = plan.copies.checkpoint_every,
                                .steps = plan.copies.keep_steps},
                       .batches_before = plan.dims.batches_before,
                       .older = plan.dims.older,
                       .state_arrays = static_cast<int>(earlier.state.size()),
                       .updates = earlier.updates,
                       .failure_timeout =
                         std::chrono::nanoseconds{cluster_.failure_timeout}.count()};
  for (const auto& where : cluster_.nodes)
    result.nodes.push_back(to_string(where));
  return result;
}

/// Layers whose values a node must receive: the layers of the node's stages. Empty if
/// the run starts with values that only a seed decides.
std::vector<int> leader::layers_for(int number) const {
  std::vector<int> result;
  if (!plan_->work->from_values && plan_->dims.batches_before == 0)
    return result;
  for (const int rank : ranks_at(node_map_, number))
    for (const auto& where : plan_->hosted_by(rank))
      for (const auto& bucket : layer_buckets(*plan_, where))
        result.push_back(static_cast<int>(bucket.of_layer));
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end()); // clang 14
  return result;
}

/// Sends the values of layers to nodes, a few layers at a time, because each layer in
/// flight is a copy in memory.
void leader::send_layers() {
  constexpr std::size_t most_on_their_way = 4;
  std::deque<std::weak_ptr<const std::vector<float>>> on_their_way;
  std::map<layer_key, std::vector<int>> wanted; // node numbers
  for (int number = 1; number <= count(); ++number)
    for (const auto& key : keys_of(*plan_, layers_for(number)))
      wanted[key].push_back(number);
  for (const auto& [key, nodes] : wanted) {
    while (on_their_way.size() >= most_on_their_way) {
      nodes_->await(node_registry::step::connected,
                    cluster_.interrupted); // all nodes still are
      if (on_their_way.front().expired())
        on_their_way.pop_front();
      else
        std::this_thread::sleep_for(1ms);
    }
    const auto values =
      std::make_shared<const std::vector<float>>(values_of(*plan_, key));
    for (const int number : nodes)
      router_->send_layer(number, to_text(key), values);
    on_their_way.emplace_back(values);
  }
}

void leader::handle(int number, const control_frame& frame) {
  if (frame.type == control_frame::kind::actors) {
    nodes_->note(number);
    return router_->handle(number, frame);
  }
  auto message = wire::decode_node_message(frame.text);
  if (message)
    nodes_->receive(number, std::move(*message));
  else
    nodes_->lose(number, "it sent an invalid message: " + message.error());
}

/// A run has not stalled while tensors arrive or leave.
stall_rule::verdict leader::look() {
  const auto moved = router_->moved();
  const bool travels = std::exchange(moved_, moved) != moved;
  return travels ? stall_rule::verdict::fine : nodes_->look();
}

void leader::begin(local_run& local) {
  nodes_->begin(local.status());
  router_->open(local);
  const auto zero = wall_clock::steady() - local.clock().now();
  for (int number = 1; number <= count(); ++number)
    nodes_->send(number, mail::start_run{nodes_->time_on(number, zero)});
}

std::vector<mail::node_report> leader::end() {
  auto result = nodes_->end();
  router_->close();
  return result;
}

} // namespace troupe
