// SPDX-License-Identifier: BSD-3-Clause
#include "actors/embedding/training_node.hpp"

#include "actors/embedding/job_plan.hpp"
#include "actors/nodes/serving_node.hpp"

#include <memory>
#include <utility>

namespace troupe {

tl::expected<std::unique_ptr<training_node>, std::string>
training_node::start(training_job job, const node_settings& settings) {
  auto planned = plan_on_node(std::move(job));
  if (!planned)
    return tl::unexpected{planned.error()};
  auto node = serving_node::start(
    {.listen = settings.listen,
     .tls = settings.tls,
     .insecure = settings.insecure,
     .plan = [kept = std::make_shared<const job_of_node>(std::move(*planned))](
               const mail::prepare& facts) { return plan_of_part(*kept, facts); },
     .report = settings.report});
  if (!node)
    return tl::unexpected{node.error()};
  return std::unique_ptr<training_node>{new training_node{std::move(*node)}};
}

training_node::training_node(std::unique_ptr<serving_node> started)
  : node_(std::move(started)) {
  // nop
}

training_node::~training_node() = default;

std::string training_node::address() const {
  return node_->address();
}

} // namespace troupe
