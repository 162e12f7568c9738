// SPDX-License-Identifier: BSD-3-Clause
// Cases {mesh: {axis: devices}, operators: [{einsum, inputs, output, reshard}],
// annotated: {tensor: [axis or null]}}.

#include "planner/kinds/readers.hpp"

namespace troupe::planner {

propagation_problem read_propagation(const case_value& from) {
  propagation_problem result;
  for (const auto& [axis, devices] : from.member("mesh").members())
    result.mesh[axis] = devices.integer(1, most_operators);
  return result;
}

void write(nlohmann::ordered_json& to, const propagation_plan& plan) {
  to["plan"] = plan.collectives.size();
}

} // namespace troupe::planner
