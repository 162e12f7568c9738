// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Cases in files: problems of all kinds as JSON, and plans as JSON. A kind's reader and
// writer stand in the kind's own file.

#include "planner/problem.hpp"

#include <nlohmann/json_fwd.hpp>
#include <tl/expected.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::planner {

struct named_problem {
  std::string name;
  any_problem content;
  /// Places of members that the kind does not have, as "graph.operators[3].sise".
  std::vector<std::string> unknown = {};
};

/// Reads a file with one case. The error is one sentence with the place of the mistake.
tl::expected<named_problem, std::string> read_case(const std::filesystem::path& path);

/// Parses the text of a case. The error is one sentence with the place of the mistake.
tl::expected<named_problem, std::string> parse_case(const std::string& text);

/// {"cost": 1.5, "plan": [..]}, or {"cost": null}; members of a kind's own besides.
nlohmann::ordered_json to_json(const answer& found);

} // namespace troupe::planner
