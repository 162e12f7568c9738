// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/bench_options.hpp"
#include "experiments/options/option_row.hpp"

#include <algorithm>

namespace troupe {

const std::vector<std::string>& pytorch_rows(bool on_gpu) {
  static const std::vector<std::string> cpu{"plain", "ddp", "1f1b", "interleaved",
                                            "zb-v"},
    gpu{"plain", "compiled", "graphs"};
  return on_gpu ? gpu : cpu;
}

const std::vector<std::string>& parts_of_bench(bool on_gpu) {
  static const std::vector<std::string> cpu{"ceilings",  "kernels", "training",
                                            "schedules", "actors",  "links"},
    gpu{"ceilings", "training", "actions", "checks", "schedules"};
  return on_gpu ? gpu : cpu;
}

option_rows bench_rows() {
  return joined(
    under("Parts", programs::measures,
          {row<&typed_options::parts>(
            "--parts",
            "Parts to measure, for example training,schedules. Default: all. Parts: "
              + listed(parts_of_bench(false)) + "; on a GPU "
              + listed(parts_of_bench(true)) + ".")}),
    under("Other systems", programs::measures,
          {row<&typed_options::comparison>(
            "--beside",
            "Comparison with PyTorch, which trains the same network. Nothing else is "
            "measured. The environment variable PYTHON names the interpreter.\n"
            "pytorch\tall rows\n"
            "pytorch:plain,1f1b\tonly the named rows, of "
              + listed(pytorch_rows(false)) + "; on a GPU of "
              + listed(pytorch_rows(true)))}));
}

tl::expected<comparison_options, std::string> parse_comparison(const std::string& text,
                                                               bool on_gpu) {
  comparison_options result;
  if (text.empty())
    return result;
  const auto colon = text.find(':');
  const auto& known = pytorch_rows(on_gpu);
  if (text.substr(0, colon) != "pytorch")
    return problem{"--beside " + text
                   + ": write pytorch, or pytorch: and names of rows, for example "
                     "pytorch:plain,1f1b"};
  if (colon == std::string::npos)
    return comparison_options{known};
  for (const auto& row : split(text.substr(colon + 1), ',')) {
    if (std::ranges::find(known, row) == known.end())
      return problem{"--beside " + text + ": there is no row '" + row + "' "
                     + (on_gpu ? "on a GPU" : "on the CPU") + "; the rows are "
                     + listed(known)};
    if (std::ranges::find(result.rows, row) != result.rows.end())
      return problem{"--beside " + text + ": the row '" + row
                     + "' is named twice; name each row once"};
    result.rows.push_back(row);
  }
  if (result.rows.empty())
    return problem{"--beside " + text + ": no row is named; there are "
                   + listed(known)};
  return result;
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
                     + listed(known)};
  return parts;
}

} // namespace troupe
