// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/lead.hpp"

#include "actors/nodes/gpus_of_nodes.hpp"
#include "actors/nodes/layer_values.hpp"
#include "actors/nodes/node_places.hpp"

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

lead::lead(const cluster& of, std::shared_ptr<const run_plan> plan,
           const run_description& what)
  : of_(of),
    plan_(std::move(plan)),
    places_(of.places.empty() ? usual_places(*plan_, count()) : of.places),
    session_(what.session),
    nodes_(std::make_unique<roll_call>(names(), of.failure_timeout, of.waits)),
    mail_(std::make_unique<mailroom>(plan_, places_, 0, session_,
                                     [this](int number, const std::string& why) {
                                       nodes_->lose(number, why, true);
                                     })) {
  try {
    using step = roll_call::step;
    reach_all();
    identify_all();
    prepare_all(what);
    link_all();
    const auto groups = groups_of_gpus();
    compare_facts();
    nodes_->tell_all(mail::connect{groups});
    nodes_->await(step::connected, of.interrupted);
    collect_ids(groups);
    send_layers();
    mail::build build;
    for (const auto& [group, id] : groups_.ids)
      build.ids.push_back(id);
    nodes_->tell_all(build);
    nodes_->await(step::ready, of.interrupted);
    nodes_->ask_for_clocks();
  } catch (...) {
    (void)lead::end();
    throw;
  }
}

lead::~lead() {
  (void)lead::end();
}

std::vector<std::string> lead::names() const {
  std::vector<std::string> result;
  for (int number = 1; number <= count(); ++number)
    result.push_back("node "
                     + to_string(of_.nodes[static_cast<std::size_t>(number) - 1]) + " ("
                     + text_of(ranks_at(places_, number)) + ")");
  return result;
}

std::unique_ptr<byte_stream> lead::greet_node(int number, const greeting& hello) const {
  const auto& where = of_.nodes[static_cast<std::size_t>(number) - 1];
  auto stream = of_.by->greet(where, hello, std::max(of_.failure_timeout, 1000ms));
  if (!stream)
    throw node_failure{stream.error(), hello.what != greeting::purpose::lead};
  return std::move(*stream);
}

void lead::reach_all() {
  for (int number = 1; number <= count(); ++number) {
    auto line = of_.by->line(
      greet_node(number, {.what = greeting::purpose::lead,
                          .session = session_.session,
                          .generation = session_.generation}),
      {.heard = [this, number](const control_frame& f) { hear(number, f); },
       .ended =
         [this, number](const std::string& why) {
           nodes_->lose(number, why.empty() ? closed_line : why);
         }});
    mail_->add(number, line);
    nodes_->add(number, std::move(line));
  }
}

/// Asks all nodes for identities, and refuses two addresses of one node.
void lead::identify_all() {
  nodes_->tell_all(mail::ask_identity{});
  nodes_->await(roll_call::step::known, of_.interrupted);
  if (const auto twins = twins_among(nodes_->identities()))
    throw nodes_differ{"--nodes: " + name_of(twins->first) + " and "
                       + name_of(twins->second) + " are one node: name it once"};
}

/// Refuses nodes that differ in facts which decide the bits of the run. The leader's
/// own data is compared as well, because evaluations read that data.
void lead::compare_facts() {
  common_facts of_attempt;
  auto& all = of_.facts != nullptr ? *of_.facts : of_attempt;
  auto wrong = all.add("this command", facts_of_data(*plan_));
  for (int number = 1; number <= count() && wrong.empty(); ++number)
    wrong = all.add("node " + name_of(number), nodes_->facts(number).facts);
  if (!wrong.empty())
    throw nodes_differ{wrong};
}

/// Asks one node after another to take part, and waits for each answer before the next
/// request.
void lead::prepare_all(const run_description& what) {
  auto all = facts(what);
  for (const int number : order_of(nodes_->identities())) {
    all.node = number;
    all.layers = layers_for(number);
    nodes_->tell(number, all);
    nodes_->await(roll_call::step::prepared, of_.interrupted, number);
  }
}

/// Returns the groups of GPUs that exchange arrays directly.
std::vector<int> lead::groups_of_gpus() {
  std::vector<node_facts> all;
  for (int number = 1; number <= count(); ++number)
    all.push_back({name_of(number), nodes_->facts(number)});
  if (auto why = refusal_of_kinds(all); !why.empty())
    throw nodes_differ{why};
  auto chosen = choose_groups(*plan_, places_, all, of_.by->encrypts());
  groups_.absence = std::move(chosen.absence);
  return std::move(chosen.groups);
}

/// "a:4242"
std::string lead::name_of(int number) const {
  return to_string(of_.nodes[static_cast<std::size_t>(number) - 1]);
}

/// Collects the ids of groups; the node of a group's first member has made the id. Each
/// node sends ids in the order of groups.
void lead::collect_ids(const std::vector<int>& groups) {
  const auto all = exchanging_groups(*plan_);
  std::map<int, std::size_t> taken; // ids used so far, by node
  for (const int group : groups) {
    const auto& first = all[static_cast<std::size_t>(group)].members.front();
    const int node = places_[static_cast<std::size_t>(plan_->rank_of(first))];
    const auto made = nodes_->ids(node);
    const auto next = taken[node]++;
    if (next >= made.size())
      throw node_failure{"node " + name_of(node)
                         + " made fewer groups of GPUs than the leader requested"};
    groups_.ids[group] = made[next];
  }
}

/// Connects the tensor links.
void lead::link_all() {
  for (int number = 1; number <= count(); ++number)
    mail_->add(number, greet_node(number, {.what = greeting::purpose::tensors,
                                           .session = session_.session,
                                           .generation = session_.generation,
                                           .from = 0}));
}

/// Returns the description of the run that all nodes receive.
mail::prepare lead::facts(const run_description& what) const {
  const auto& plan = *plan_;
  mail::prepare result{.version = of_.version,
                       .session = session_.session,
                       .generation = session_.generation,
                       .places = places_,
                       .options = what.options,
                       .keep = {.record = plan.keep_record,
                                .first = plan.keep_first,
                                .watched = plan.watched,
                                .weights = plan.keep_weights,
                                .gradients = plan.keep_gradients,
                                .versions = plan.keep_versions,
                                .model_times = plan.model_times,
                                .evaluate_every = plan.evaluate_every,
                                .checkpoint_every = plan.checkpoint_every,
                                .steps = plan.keep_steps},
                       .before = plan.dims.before,
                       .older = plan.dims.older,
                       .moments = static_cast<int>(plan.work->earlier.moments.size()),
                       .updates = plan.work->earlier.updates,
                       .failure_timeout =
                         std::chrono::nanoseconds{of_.failure_timeout}.count()};
  for (const auto& where : of_.nodes)
    result.nodes.push_back(to_string(where));
  return result;
}

/// Layers whose values a node must receive: the layers of the node's stages. Empty if
/// the run starts with values that only a seed decides.
std::vector<int> lead::layers_for(int number) const {
  std::vector<int> result;
  if (!plan_->work->from_values && plan_->dims.before == 0)
    return result;
  for (const int rank : ranks_at(places_, number))
    for (const auto& where : plan_->hosted_by(rank))
      for (const auto& bucket : plan_->layer_buckets(where))
        result.push_back(static_cast<int>(bucket.of_layer));
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end()); // clang 14
  return result;
}

/// Sends the values of layers to nodes, a few layers at a time, because each layer in
/// flight is a copy in memory.
void lead::send_layers() {
  constexpr std::size_t most_on_their_way = 4;
  std::deque<std::weak_ptr<const std::vector<float>>> on_their_way;
  std::map<layer_key, std::vector<int>> wanted; // node numbers
  for (int number = 1; number <= count(); ++number)
    for (const auto& key : keys_of(*plan_, layers_for(number)))
      wanted[key].push_back(number);
  for (const auto& [key, nodes] : wanted) {
    while (on_their_way.size() >= most_on_their_way) {
      nodes_->await(roll_call::step::connected, of_.interrupted); // all nodes still are
      if (on_their_way.front().expired())
        on_their_way.pop_front();
      else
        std::this_thread::sleep_for(1ms);
    }
    const auto values =
      std::make_shared<const std::vector<float>>(values_of(*plan_, key));
    for (const int number : nodes)
      mail_->send_layer(number, to_text(key), values);
    on_their_way.emplace_back(values);
  }
}

void lead::hear(int number, const control_frame& frame) {
  if (frame.what == control_frame::kind::actors) {
    nodes_->note(number);
    return mail_->hear(number, frame);
  }
  auto what = wire::decode_node_mail(frame.text);
  if (what)
    nodes_->take(number, std::move(*what));
  else
    nodes_->lose(number, "it sent a message that no node sends: " + what.error());
}

/// A run has not stalled while tensors arrive or leave.
stall_rule::verdict lead::look() {
  const auto moved = mail_->moved();
  const bool travels = std::exchange(moved_, moved) != moved;
  return travels ? stall_rule::verdict::fine : nodes_->look();
}

void lead::begin(ensemble& here) {
  nodes_->begin(here.board());
  mail_->open(here);
  const auto zero = wall_clock::steady() - here.clock().now();
  for (int number = 1; number <= count(); ++number)
    nodes_->tell(number, mail::begin_run{nodes_->time_on(number, zero)});
}

std::vector<mail::node_report> lead::end() {
  auto result = nodes_->end();
  mail_->close();
  return result;
}

} // namespace troupe
