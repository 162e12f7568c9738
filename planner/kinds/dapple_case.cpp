// SPDX-License-Identifier: BSD-3-Clause
// Cases {forward, backward, exchange: [seconds of each stage], microbatches}, and
// {layers: [[forward, backward, output bytes, parameter bytes]], machines: [devices],
// inside, between: bytes a second, microbatches}.

#include "planner/kinds/readers.hpp"

namespace troupe::planner {

dapple_latency_problem read_dapple_latency(const case_value& from) {
  dapple_latency_problem result;
  result.forward = from.member("forward").numbers();
  result.backward = from.member("backward").numbers();
  result.exchange = from.member("exchange").numbers();
  if (result.forward.empty())
    from.member("forward").fail("is empty, but a stage or more are needed");
  for (const auto* const name : {"backward", "exchange"})
    from.member(name).elements(result.forward.size());
  result.microbatches = from.member("microbatches").integer(1, 1'000'000'000);
  return result;
}

dapple_problem read_dapple(const case_value& from) {
  dapple_problem result;
  for (const auto& element : from.member("layers").elements()) {
    const auto values = element.elements(4);
    result.layers.push_back(
      {values[0].number(), values[1].number(), values[2].number(), values[3].number()});
  }
  if (result.layers.empty())
    from.member("layers").fail("is empty, but a layer or more are needed");
  for (const auto& element : from.member("machines").elements())
    result.machines.push_back(element.integer(1, 4096));
  if (result.machines.empty())
    from.member("machines").fail("is empty, but a machine or more are needed");
  result.inside = from.member("inside").positive();
  result.between = from.member("between").positive();
  result.microbatches = from.member("microbatches").integer(1, 1'000'000'000);
  return result;
}

void write(nlohmann::ordered_json& to, const dapple_plan& plan) {
  auto stages = nlohmann::ordered_json::array();
  for (const auto& stage : plan.stages)
    stages.push_back(
      {{"first", stage.first}, {"last", stage.last}, {"devices", stage.devices}});
  to["plan"] = std::move(stages);
}

void write(nlohmann::ordered_json& to, const dapple_latency& plan) {
  to["pivot"] = plan.pivot;
  to["warm_up"] = plan.warm_up;
  to["steady"] = plan.steady;
  to["end"] = plan.end;
}

} // namespace troupe::planner
