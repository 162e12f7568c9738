// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

/// Schedules of the catalog that so many ranks and microbatches fit. \param units of
/// the network: so many stages at most
std::vector<std::string> all_that_fit(int ranks, int microbatches, int units);

/// Schedules that give a rank several stages, split backwards or pair them: of those
/// that fit, other ones each time.
class new_schedules {
public:
  /// Appends some. \param count at most
  void add(std::vector<std::string>& to, int ranks, int microbatches, int units,
           int count);

private:
  std::size_t turn_ = 0;
};

} // namespace troupe
