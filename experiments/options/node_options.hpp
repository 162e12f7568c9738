// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/node_address.hpp"
#include "messaging/links/tls.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Options of runs that other processes play, as a user types them.
struct typed_nodes {
  std::string nodes;
  std::string place;
  double failure_timeout = 5; ///< seconds
  bool restart = false;
  bool keep_steps = false;
  std::string tls;
  bool insecure = false;
};

/// The processes that play a run, if not this one, and how they are reached.
struct node_options {
  std::vector<node_address> nodes; ///< Empty: this process plays all of the run.
  std::vector<int> places; ///< The node of each rank, from 1; empty: usual ones.
  std::chrono::milliseconds failure_timeout{5000};
  bool restart = false;
  bool keep_steps = false;
  std::optional<tls_files> tls;
  bool insecure = false;
};

/// \param restarts whether its runs can begin again
void add_nodes(option_list& to, typed_nodes& place, bool restarts);

/// Also of a node itself: --tls and --insecure.
void add_security(option_list& to, std::string& tls, bool& insecure);

/// On error says what is wrong, and what is allowed.
tl::expected<node_options, std::string> parse(const typed_nodes& typed);

/// "CERT,KEY,CA". On error says what is wrong.
tl::expected<tls_files, std::string> parse_tls(const std::string& text);

/// Why such an address must not be used in plain; empty if it may: only this machine
/// reaches it, there is TLS, or the user says that it is all right.
std::string refusal_of_plain(const node_address& a, bool has_tls, bool insecure);

} // namespace troupe
