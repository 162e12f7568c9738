#pragma once

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

/// What --mesh says: "data=2,pipe=4,tensor=2,expert=2". `stages` are those of --stages.
struct mesh_options {
  int data = 1;
  int stages;
  int tensor = 1;
  int expert = 1;
};
tl::expected<mesh_options, std::string> parse_mesh(const std::string& text, int stages);

/// Blocks or layers of each stage, from "2,2,1,1".
tl::expected<std::vector<int>, std::string> parse_split(const std::string& text);

} // namespace troupe
