// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/node_links.hpp"
#include "experiments/options/node_options.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"
#include "models/short_text.hpp"

#include <algorithm>

namespace troupe {

option_rows node_rows() {
  constexpr auto group = &typed_options::nodes;
  using typed = typed_nodes;
  const auto restarts = [](const program_info& p) { return p.distributes && p.keeps; };
  constexpr effect_rule of_nodes{
    [](run_view r) { return !r.o.nodes.nodes.empty(); },
    "applies only with --nodes: say --nodes too, or leave % out"};
  return under(
    "Nodes", [](const program_info& p) { return p.distributes; },
    {row<group, &typed::nodes>(
       "--nodes", "Addresses of the nodes that run the ranks: HOST:PORT, separated by "
                  "commas. Default: this process runs all ranks."),
     row<group, &typed::node_map>(
       "--place",
       "Node of each rank, counted from 1 in --nodes. 1,1,2,2 gives each of two nodes "
       "two ranks. Default: ranks in order, equally many on each node.",
       {.effect = of_nodes}),
     row<group, &typed::failure_timeout>(
       "--failure-timeout",
       "Seconds without a message after which a node counts as lost.",
       {.effect = of_nodes}),
     row<group, &typed::restart>("--restart",
                                 "After the loss of a node the run continues from the "
                                 "last checkpoint on the remaining nodes.",
                                 {.has = restarts, .effect = of_nodes}),
     row<group, &typed::keep_steps>(
       "--keep-steps",
       "Data replicas keep copies of their last steps in memory. After the loss of a "
       "node --restart continues from these copies, at the step that was lost.",
       {.has = restarts,
        .effect = {[](run_view r) { return r.o.nodes.restart; },
                   "keeps the steps from which --restart continues: say --restart too, "
                   "or leave % out"}}),
     row<group, &typed::tls>(
       "--tls",
       "Three PEM files, separated by commas: CERTIFICATE and KEY of this program, and "
       "AUTHORITY, a certificate that all nodes trust.",
       {.effect = of_nodes}),
     row<group, &typed::insecure>(
       "--insecure", "Allows unencrypted connections, without TLS, to other machines.",
       {.effect = of_nodes})});
}

tl::expected<tls_files, std::string> parse_tls(const std::string& text) {
  const auto parts = split(text, ',');
  if (parts.size() != 3 || std::ranges::any_of(parts, &std::string::empty))
    return problem{"--tls " + text
                   + ": name three PEM files, CERTIFICATE,KEY,AUTHORITY, which "
                     "./troupe certificates makes"};
  return tls_files{parts[0], parts[1], parts[2]};
}

tl::expected<node_options, std::string> parse(const typed_nodes& typed) {
  node_options result{.restart = typed.restart,
                      .keep_steps = typed.keep_steps,
                      .insecure = typed.insecure};
  if (!(typed.failure_timeout >= 0.05 && typed.failure_timeout <= 3600))
    return problem{"--failure-timeout " + short_text(typed.failure_timeout)
                   + ": a timeout is from 0.05 to 3,600 seconds"};
  result.failure_timeout =
    std::chrono::milliseconds{static_cast<std::int64_t>(typed.failure_timeout * 1000)};
  if (!typed.tls.empty()) {
    auto files = parse_tls(typed.tls);
    if (!files)
      return problem{files.error()};
    result.tls = std::move(*files);
  }
  if (typed.nodes.empty())
    return result;
  auto nodes =
    parse_nodes(split(typed.nodes, ','), result.tls.has_value(), typed.insecure);
  if (!nodes)
    return problem{nodes.error()};
  result.nodes = std::move(*nodes);
  if (!typed.node_map.empty())
    for (const auto& text : split(typed.node_map, ',')) {
      const auto node = whole_number<int>(text);
      if (!node || *node < 1 || *node > std::ssize(result.nodes))
        return problem{"--place " + typed.node_map
                       + ": a rank's node is one of --nodes, from 1 to "
                       + std::to_string(result.nodes.size())};
      result.node_map.push_back(*node);
    }
  return result;
}

} // namespace troupe
