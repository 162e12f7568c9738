// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/files/file_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string_view>

namespace troupe {

namespace {

constexpr std::array rules{std::string_view{"flush"}, std::string_view{"stash"},
                           std::string_view{"vertical_sync"},
                           std::string_view{"double_buffered"},
                           std::string_view{"latest"}};

std::string all_rules() {
  std::string result;
  for (const auto rule : rules)
    result += (result.empty() ? "" : ", ") + std::string{rule};
  return result;
}

/// The versions that the forwards of each stage read, by microbatch.
using found_versions = std::vector<std::vector<int>>;

found_versions newest_versions(const std::vector<std::vector<action>>& rows,
                               const shape& dims) {
  found_versions result(static_cast<std::size_t>(dims.stages),
                        std::vector(static_cast<std::size_t>(dims.total()), 0));
  std::vector<int> update_counts(static_cast<std::size_t>(dims.stages));
  for (const auto& row : rows)
    for (const auto& a : row) {
      const auto s = static_cast<std::size_t>(a.stage);
      if (a.op == op::update)
        ++update_counts[s];
      else if (a.op == op::forward)
        result[s][static_cast<std::size_t>(a.microbatch)] = update_counts[s];
    }
  // A rule never gives an older version to a later microbatch.
  for (auto& of_stage : result)
    for (std::size_t m = of_stage.size(); m-- > 1;)
      of_stage[m - 1] = std::min(of_stage[m - 1], of_stage[m]);
  return result;
}

} // namespace

tl::expected<file_rules, std::string>
file_rules::parse(const std::map<std::string, std::string>& values) {
  file_rules result;
  constexpr int most = 1 << 20;
  for (const auto& [key, text] : values) {
    if (key == "weights") {
      if (std::ranges::find(rules, text) == rules.end())
        return tl::unexpected{"weights=" + text + ": write " + all_rules()};
      result.weights = text;
      continue;
    }
    int value = 0;
    const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || value < 1
        || value > most)
      value = 0;
    if (key != "update_every" && key != "microbatches" && key != "most_held"
        && key != "directions")
      return tl::unexpected{"a file has no parameter '" + key
                            + "': write weights=, update_every=, microbatches=, "
                              "most_held= or directions="};
    if (value == 0)
      return tl::unexpected{key + "=" + text
                            + ": write a whole number from 1 to 1,048,576"};
    if (key == "update_every")
      result.update_every = value;
    else if (key == "microbatches")
      result.microbatches = value;
    else if (key == "most_held")
      result.most_held = value;
    else
      result.directions = value;
  }
  if (result.directions > 1 && result.directions % 2 != 0)
    return tl::unexpected{"directions=" + std::to_string(result.directions)
                          + ": write 1, or a multiple of 2 for pairs of opposite "
                            "directions"};
  if (result.directions > 1 && !result.flushes())
    return tl::unexpected{std::string{
      "directions=2 shares updates between directions: write weights=flush too"}};
  if (result.flushes() && result.update_every > 0)
    return tl::unexpected{std::string{
      "update_every= needs weights without a flush, as a batch with a flush has one "
      "update: leave update_every= out, or write weights=stash, for example"}};
  return result;
}

weight_rule file_rules::weights_of(const std::vector<std::vector<action>>& rows,
                                   const shape& dims) const {
  if (flushes())
    return troupe::weights::flush;
  if (weights == "latest")
    return troupe::weights::latest;
  if (weights == "double_buffered")
    return {"double_buffered", [](const shape&, int, int microbatch, int every) {
              return std::max(0, microbatch / every - 1);
            }};
  const auto versions =
    std::make_shared<const found_versions>(newest_versions(rows, dims));
  const bool of_first = weights == "vertical_sync";
  return {of_first ? "vertical_sync" : "stash",
          [versions, of_first](const shape&, int stage, int microbatch, int) {
            const auto& stage_versions =
              (*versions)[of_first ? 0 : static_cast<std::size_t>(stage)];
            return stage_versions[std::min(static_cast<std::size_t>(microbatch),
                                           stage_versions.size() - 1)];
          }};
}

std::string header_of(const schedule& sch, const shape& dims) {
  std::string says;
  const auto add = [&](const std::string& key, const std::string& value) {
    says += (says.empty() ? "" : ",") + key + "=" + value;
  };
  if (sch.asynchronous()) {
    add("weights", std::string{sch.weights.name});
    if (sch.update_every > 0)
      add("update_every", std::to_string(sch.update_every));
    add("microbatches", std::to_string(dims.microbatches));
  }
  if (sch.most_held > 0)
    add("most_held", std::to_string(sch.most_held));
  if (sch.where.directions > 1)
    add("directions", std::to_string(sch.where.directions));
  return says.empty() ? "" : "# troupe: " + says + '\n';
}

} // namespace troupe
