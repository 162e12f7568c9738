// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/interconnect.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

class option_list;

/// Which ranks stand on one machine, and the links between machines.
struct machine_options {
  machine_model model;
  std::string links; ///< The file that named some of these; empty: there is none.
};

void add_machines(option_list& to, std::string& place);

/// What --machines says: "ranks=8,latency=0.05,bandwidth=1e9,links=FILE", latency in
/// milliseconds, bandwidth in bytes a second. Empty text: all ranks on one machine.
/// A line of the file is "0,1,40,2.5e7": the link between two machines, its latency and
/// its bandwidth.
/// \param inside the link between ranks of one machine
/// \param ranks of the run
tl::expected<machine_options, std::string>
parse_machines(const std::string& text, const link_cost& inside, int ranks);

} // namespace troupe
