// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/comparison_options.hpp"

#include "experiments/options/option_list.hpp"
#include "experiments/options/parsing.hpp"

#include <algorithm>

namespace troupe {

namespace {

std::string names_of(bool on_gpu) {
  std::string result;
  for (const auto& row : pytorch_rows(on_gpu))
    result += (result.empty() ? "" : ", ") + row;
  return result;
}

} // namespace

const std::vector<std::string>& pytorch_rows(bool on_gpu) {
  static const std::vector<std::string> cpu{"plain", "ddp", "1f1b", "interleaved",
                                            "zb-v"},
    gpu{"plain", "compiled", "graphs"};
  return on_gpu ? gpu : cpu;
}

void add_comparison(option_list& to, std::string& typed) {
  to.begin_group("Other systems");
  to.add_option("--beside", typed,
                "Comparison with PyTorch, which trains the same network. Nothing else "
                "is measured. The environment variable PYTHON names the interpreter.\n"
                "pytorch\tall rows\n"
                "pytorch:plain,1f1b\tonly the named rows, of "
                  + names_of(false) + "; on a GPU of " + names_of(true));
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
                     + names_of(on_gpu)};
    if (std::ranges::find(result.rows, row) != result.rows.end())
      return problem{"--beside " + text + ": the row '" + row
                     + "' is named twice; name each row once"};
    result.rows.push_back(row);
  }
  if (result.rows.empty())
    return problem{"--beside " + text + ": no row is named; there are "
                   + names_of(on_gpu)};
  return result;
}

} // namespace troupe
