// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/node_runs.hpp"

#include "actors/nodes/node_maps.hpp"
#include "actors/run/awake_time.hpp"
#include "experiments/options/options_text.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/node_status.hpp"
#include "kernels/version.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>
#include <utility>

namespace troupe {

namespace {

nanoseconds nanoseconds_of(std::chrono::milliseconds time) {
  return std::chrono::nanoseconds{time}.count();
}

/// Waits, at most until the user ends the program.
void wait(std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!interruption() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
}

} // namespace

std::optional<std::vector<int>> ranks_here(const options& o) {
  if (o.nodes.nodes.empty())
    return {};
  return std::vector<int>{};
}

tl::expected<node_runs, std::string> node_runs::from(const options& o) {
  node_runs result{o};
  if (o.nodes.nodes.empty())
    return result;
  try {
    for (const auto& chosen : o.schedules.chosen)
      (void)result.text_of(chosen.text);
  } catch (const std::exception&) {
    return tl::unexpected{
      std::string{"--nodes needs names of data and schedules in UTF-8, and a name is "
                  "not: rename the file or the folder"}};
  }
  result.session_.session = new_identity();
  auto links = node_links::from(o.nodes.tls);
  if (!links)
    return tl::unexpected{links.error()};
  result.links_ = std::move(*links);
  return result;
}

std::string node_runs::placement_error(const run_plan& plan) const {
  if (!uses_nodes())
    return {};
  return node_map_error(plan, node_map_of(plan), static_cast<int>(nodes_.size()));
}

std::vector<int> node_runs::node_map_of(const run_plan& plan) const {
  const auto& named = options_->nodes.node_map;
  return named.empty() ? default_node_map(plan, static_cast<int>(nodes_.size()))
                       : named;
}

std::string node_runs::first_placement_error(const run_plan& plan) const {
  auto error = placement_error(plan);
  if (error.empty() && plan.copies.keep_steps)
    error = redundancy_error(plan, node_map_of(plan));
  return error;
}

/// The options of one run as text, for the nodes that perform it.
std::string node_runs::text_of(const std::string& schedule) const {
  auto o = *options_;
  std::erase_if(o.schedules.chosen,
                [&](const chosen_schedule& chosen) { return chosen.text != schedule; });
  o.schedules.chosen.resize(1);
  o.checkpoint = {};
  o.data.init.clear();
  return to_text(o);
}

restarts::attempt node_runs::start(const std::string& text, const run_plan& plan,
                                   const run_callbacks& callbacks) {
  const cluster run_nodes{.nodes = nodes_,
                          .node_map = options_->nodes.node_map,
                          .failure_timeout = options_->nodes.failure_timeout,
                          .version = version(),
                          .connections = links_.get(),
                          .facts = &facts_,
                          .interrupted = &interruption(),
                          .on_wait = [](const std::string& message) {
                            std::cerr << "troupe: " << message << '\n';
                          }};
  restarts::attempt result;
  try {
    leader node_leader{
      run_nodes,
      std::make_shared<const run_plan>(plan),
      {.options = text_of(text), .session = {session_.session, ++session_.generation}}};
    result.result = troupe::perform(plan, callbacks, &node_leader);
    result.has_lost = node_leader.has_lost();
  } catch (const ended_while_waiting&) {
    result.result.outcome = ending::interrupted;
  }
  return result;
}

run_result node_runs::perform(const std::string& text, run_plan plan,
                              const run_callbacks& callbacks,
                              const restarts::new_start& again) {
  if (!uses_nodes())
    try {
      return troupe::perform(std::move(plan), callbacks);
    } catch (const ended_while_joining&) {
      run_result result;
      result.outcome = ending::interrupted;
      return result;
    }
  nodes_ = options_->nodes.nodes;
  if (again
      && restarts_.has_lost()) // a node lost in an earlier run may still be missing
    find_nodes(plan);
  const restarts::start_functions functions{
    .start = [&](const run_plan& next) { return start(text, next, callbacks); },
    .find_nodes = [this](const run_plan& next) { return find_nodes(next); },
    .has_all_nodes = [this] { return nodes_.size() == options_->nodes.nodes.size(); },
    .wait = [this] { wait(options_->nodes.failure_timeout); },
    .is_interrupted = [] { return interruption().load(); }};
  return restarts_.perform(std::move(plan), functions, again);
}

/// Finds the nodes on which a run can start again: the nodes that answer. If ranks were
/// placed by hand, or no node answers, waits for more. Returns false if that takes too
/// long.
bool node_runs::find_nodes(const run_plan& plan) {
  const auto timeout =
    std::max(options_->nodes.failure_timeout, std::chrono::milliseconds{500});
  constexpr int most_timeouts = 20; // each as long as `timeout`
  const auto& configured = options_->nodes;
  // One round asks the nodes one after another.
  awake_time watched{nanoseconds_of(timeout) * (std::ssize(configured.nodes) + 1)};
  nanoseconds waited = 0;
  while (!interruption() && waited <= most_timeouts * nanoseconds_of(timeout)) {
    waited += watched.look(wall_clock::steady());
    nodes_.clear();
    for (const auto& address : configured.nodes)
      if (status_of(address, *links_, timeout, session_))
        nodes_.push_back(address);
    // Ranks that must share a node may fit on fewer nodes only.
    while (configured.node_map.empty() && !nodes_.empty()
           && !placement_error(plan).empty())
      nodes_.pop_back();
    if (nodes_.size() == configured.nodes.size()
        || (!nodes_.empty() && configured.node_map.empty()))
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
  return false;
}

} // namespace troupe
