// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

/// Names of the schedules of the catalog that fit the given numbers of ranks and
/// microbatches of a pipeline.
/// \param units blocks or layers of the network, the largest possible number of stages
std::vector<std::string> all_that_fit(int ranks, int microbatches, int units);

/// Chooses schedules that give a rank several stages, split backwards or pair actions.
/// Each call continues a rotation over these schedules.
class new_schedules {
public:
  /// Appends the names of the next schedules that fit.
  /// \param units as for all_that_fit()
  /// \param count number of names to append; fewer are appended if fewer schedules fit
  void add(std::vector<std::string>& to, int ranks, int microbatches, int units,
           int count);

private:
  std::size_t turn_ = 0;
};

} // namespace troupe
