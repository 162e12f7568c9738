// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/part_options.hpp"

#include "experiments/options/option_list.hpp"
#include "experiments/options/parsing.hpp"

#include <algorithm>

namespace troupe {

namespace {

std::string names_of_parts(bool on_gpu) {
  std::string result;
  for (const auto& part : parts_of_bench(on_gpu))
    result += (result.empty() ? "" : ", ") + part;
  return result;
}

} // namespace

const std::vector<std::string>& parts_of_bench(bool on_gpu) {
  static const std::vector<std::string> cpu{"ceilings",  "kernels", "training",
                                            "schedules", "actors",  "links"},
    gpu{"ceilings", "training", "actions", "checks", "schedules"};
  return on_gpu ? gpu : cpu;
}

void add_parts(option_list& to, std::string& typed) {
  to.begin_group("Parts");
  to.add_option(
    "--parts", typed,
    "Parts to measure, for example training,schedules. Default: all. Parts: "
      + names_of_parts(false) + "; on a GPU " + names_of_parts(true) + ".");
}

tl::expected<std::vector<std::string>, std::string> parse_parts(const std::string& text,
                                                                bool on_gpu) {
  const auto& known = parts_of_bench(on_gpu);
  if (text.empty())
    return known;
  auto parts = split(text, ',');
  for (const auto& part : parts)
    if (std::ranges::find(known, part) == known.end())
      return problem{"--parts " + text + ": there is no part '" + part + "' "
                     + (on_gpu ? "on a GPU" : "on the CPU") + "; the parts are "
                     + names_of_parts(on_gpu)};
  return parts;
}

} // namespace troupe
