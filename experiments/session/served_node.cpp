// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/served_node.hpp"

#include "experiments/options/parsing.hpp"
#include "experiments/options/run_options.hpp"
#include "experiments/session/node_part.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe {

tl::expected<std::unique_ptr<serving_node>, std::string>
start_node(own_parts own, const served_settings& settings) {
  serving_node::settings how{.listen = settings.listen, .insecure = settings.insecure};
  if (!settings.tls.empty()) {
    auto named = parse_tls(settings.tls);
    if (!named)
      return tl::unexpected{named.error()};
    how.tls = std::move(*named);
  }
  const int cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  how.plan = [own = std::move(own),
              limits =
                node_limits{.threads = settings.threads > 0 ? settings.threads : cores,
                            .folder = settings.folder}](const mail::prepare& facts) {
    return plan_of_part(facts, limits, own);
  };
  return serving_node::start(std::move(how));
}

} // namespace troupe
