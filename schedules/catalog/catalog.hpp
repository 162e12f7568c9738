#pragma once

#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

schedule naive();
schedule gpipe();
schedule one_f_one_b();

/// \param eager whether directions add their gradients while backwards still run
schedule chimera(bool eager = true);

/// \param update_every microbatches that an update of a stage covers, at least 1
/// \param vertical_sync whether all stages read the version that stage 0 read
schedule pipedream(int update_every = 1, bool vertical_sync = false);

schedule two_bw();

/// \param max_active_keys microbatches forwarded but not yet backwarded at stage 0
/// \param min_update_frequency gradients that a stage sums before it updates
schedule ampnet(int max_active_keys = 4, int min_update_frequency = 8);

/// A parameter that a user may set by name. `off` and `on` stand for 0 and 1.
struct schedule_parameter {
  std::string_view name;
  int initial;
  int least;
  int most;
  std::string_view meaning;
};

/// A schedule as users find it.
struct catalog_entry {
  std::string_view name;
  std::string_view summary;
  std::vector<schedule_parameter> parameters;
  /// Takes one value for each parameter, in order.
  schedule (*make)(std::span<const int> values);
};

/// Every schedule there is.
std::span<const catalog_entry> catalog();

/// The names in the catalog: "naive, gpipe, ...".
std::string catalog_names();

/// The schedule called `name`, its parameters set from `values`, the others as in the
/// catalog. On error says what was wrong and what is allowed.
tl::expected<schedule, std::string>
find_schedule(std::string_view name,
              const std::map<std::string, std::string>& values = {});

} // namespace troupe
