// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/interconnect.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

/// The number of ranks on each machine, and the links within and between machines.
struct machine_options {
  machine_model model;
  /// Path of the file with links of single pairs of machines; empty: there is no file.
  std::string links;
};

/// The help text of --machines.
inline constexpr const char* machines_help =
  "Machines in virtual time: ranks=8,latency=0.05,bandwidth=1e9.\n"
  "ranks\tranks of each machine, which share its port to other machines\n"
  "latency\tmilliseconds of a message between machines\n"
  "bandwidth\tbytes a second of a machine's port\n"
  "links=FILE\tlast; links between pairs of machines that differ. 0,1,40,2.5e7: "
  "machines 0 and 1, 40 milliseconds, 2.5e7 bytes a second";

/// Reads --machines: "ranks=8,latency=0.05,bandwidth=1e9,links=FILE", latency in
/// milliseconds, bandwidth in bytes per second; `links` comes last. Latency and
/// bandwidth are 0 by default: messages between machines take no time. An empty text
/// puts all ranks on one machine. A line of the file is "0,1,40,2.5e7": two machines,
/// counted from 0, then the latency and the bandwidth of the link between the two.
/// Empty lines and lines that begin with # are skipped. The error is one sentence about
/// the mistake.
/// \param inside the link between ranks of one machine
/// \param ranks number of the run's ranks
/// \throws std::runtime_error if reading the opened file of links fails
tl::expected<machine_options, std::string>
parse_machines(const std::string& text, const link_cost& inside, int ranks);

} // namespace troupe
