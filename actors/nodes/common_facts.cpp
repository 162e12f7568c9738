// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/common_facts.hpp"

namespace troupe {

std::string common_facts::add(const std::string& process,
                              const std::vector<mail::deciding_fact>& facts) {
  for (const auto& fact : facts) {
    const auto& first =
      known_.try_emplace(fact.name, value_of_process{process, fact.value})
        .first->second;
    if (first.value != fact.value)
      return "the processes of a run must have the same " + fact.name + ": " + process
             + " has " + fact.value + ", and " + first.process
             + (first.process == process ? " had " : " has ") + first.value
             + (fact.name == name_of_data
                  ? "; give all nodes the same files for --data"
                  : "; use the same build of troupe on processors of one kind");
  }
  return {};
}

} // namespace troupe
