// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/fitting_schedules.hpp"

#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

bool fits(const std::string& name, int ranks, int microbatches, int units) {
  const auto sch = *find_schedule(name);
  const int stages = stages_on(sch.where, ranks);
  return stages <= units && validation_error(sch, {stages, microbatches}).empty();
}

} // namespace

std::vector<std::string> all_that_fit(int ranks, int microbatches, int units) {
  std::vector<std::string> result;
  for (const auto& entry : catalog())
    if (std::string name{entry.name}; fits(name, ranks, microbatches, units))
      result.push_back(std::move(name));
  return result;
}

void new_schedules::add(std::vector<std::string>& to, int ranks, int microbatches,
                        int units, int count) {
  static const std::array names{"zb-h1",  "interleaved", "dualpipe", "zb-v",
                                "v-half", "looped_bfs",  "zb-h2",    "dualpipev",
                                "v-min",  "zb-auto",     "hanayo"};
  for (std::size_t tried = 0; tried < names.size() && count > 0; ++tried)
    if (const std::string name = names[turn_++ % names.size()];
        fits(name, ranks, microbatches, units)) {
      to.push_back(name);
      --count;
    }
}

} // namespace troupe
