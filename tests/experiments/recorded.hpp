// SPDX-License-Identifier: BSD-3-Clause
// The record of a run as report.html stores it, and the numbers that docs/results.md
// computes from the record. Independent of experiments/report.

#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace recorded {

using nlohmann::json;

/// An action, or a part of one.
struct action {
  char kind;
  int stage, microbatch, pipeline, version;
  std::int64_t start, end;
  bool part, goes_on, expert;
  int alive;

  std::int64_t length() const { return end - start; }
  bool sums() const { return kind == 'B' || kind == 'W'; }
  bool goes_back() const { return kind == 'B' || kind == 'I'; }
};

using row = std::vector<action>;

/// The data of a page, as the page's script reads the data.
inline json data_of_page(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const auto from = page.find(begin);
  if (from == page.npos)
    throw std::runtime_error("the page has no data");
  const auto data = from + begin.size();
  return json::parse(page.substr(data, page.find("</script>", data) - data));
}

inline std::vector<row> rows_from(const json& ranks, const std::string& letters) {
  std::vector<row> result;
  for (const auto& numbers : ranks) {
    auto& to = result.emplace_back();
    std::int64_t now = 0;
    for (std::size_t i = 0; i < numbers.size(); i += 9) {
      const auto at = [&](std::size_t k) { return numbers[i + k].get<std::int64_t>(); };
      const auto number = [&](std::size_t k) { return static_cast<int>(at(k)); };
      const auto start = now + at(5), marks = at(7);
      now = start + at(6);
      to.push_back({letters.at(static_cast<std::size_t>(at(0))), number(1), number(2),
                    number(3), number(4), start, now, (marks & 1) != 0,
                    (marks & 2) != 0, (marks & 16) != 0, number(8)});
    }
  }
  return result;
}

/// A run: the sizes in results.json, and the record.
struct run {
  json results, data, model; ///< The run's entry, and entries of results.json.
  std::vector<row> ranks;
  int stages, shards, directions, replicas, share; ///< S, T, D, N, M.

  run(const json& all, const json& page, std::size_t index)
    : results(all["runs"][index]),
      data(all["data"]),
      model(all["model"]),
      ranks(rows_from(page["runs"][index]["ranks"], page["letters"])),
      stages(results["stages"]),
      shards(results["tensor"]),
      directions(
        results["schedule"] == "chimera" || results["schedule"] == "dualpipe" ? 2 : 1),
      replicas(results["replicas"].get<int>() / directions),
      share(results["microbatches"].get<int>() / replicas) {
    // nop
  }

  int places() const { return static_cast<int>(ranks.size()) / replicas / shards; }
  int replica_of(std::size_t rank) const {
    return static_cast<int>(rank) / shards / places();
  }
  int shard_of(std::size_t rank) const { return static_cast<int>(rank) % shards; }
  bool is_local_rule() const { return results["schedule"] == "ampnet"; }
  bool is_alone() const { return !results["exchange_staleness"].is_null(); }

  /// A microbatch's index in its step, counted over all data replicas.
  int place(int replica, int microbatch) const {
    return replica * share + microbatch % share;
  }
  std::int64_t samples_of(int replica, int microbatch) const {
    const auto k = static_cast<std::size_t>(place(replica, microbatch));
    if (const auto& sizes = results["microbatch_sizes"]; !sizes.is_null())
      return sizes[k];
    const std::int64_t batch = data["batch"], all = results["microbatches"];
    return batch / all + (static_cast<std::int64_t>(k) < batch % all ? 1 : 0);
  }
  std::int64_t tokens_of(int replica, int microbatch) const {
    const auto k = static_cast<std::size_t>(place(replica, microbatch));
    const auto& lengths = results["sequence_lengths"];
    const std::int64_t length =
      lengths.is_null() ? model["seq"] : lengths[k % lengths.size()];
    return length * samples_of(replica, microbatch);
  }

  /// Calls a function for each action and part, with the rank's number.
  template <class Each>
  void for_each(const Each& each) const {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      for (const auto& a : ranks[rank])
        each(rank, a);
  }
};

/// An update of a stage on a rank: the covered microbatches, and the staleness of each
/// gradient.
struct update {
  std::size_t rank;
  int stage, version;
  std::vector<int> microbatches;
  std::vector<int> staleness; // by microbatch
};

/// Returns the updates of a run, rank by rank, in order.
inline std::vector<update> updates_of(const run& r) {
  std::vector<update> result;
  for (std::size_t rank = 0; rank < r.ranks.size(); ++rank) {
    using place = std::pair<int, int>;             // pipeline and stage
    std::map<std::tuple<int, int, int>, int> read; // and microbatch
    std::map<place, std::vector<int>> summed;
    for (const auto& a : r.ranks[rank]) {
      if (a.part || a.expert)
        continue;
      if (a.kind == 'F')
        read[{a.pipeline, a.stage, a.microbatch}] = a.version;
      if (a.sums())
        summed[{a.pipeline, a.stage}].push_back(a.microbatch);
      if (a.kind != 'U')
        continue;
      auto& made = result.emplace_back(update{rank, a.stage, a.version, {}, {}});
      made.microbatches = std::exchange(summed[{a.pipeline, a.stage}], {});
      for (const int m : made.microbatches)
        made.staleness.push_back(a.version - 1 - read.at({a.pipeline, a.stage, m}));
    }
  }
  return result;
}

/// Returns the microbatches of each loss, with data replicas. A loss covers an update
/// of the last stage, over all replicas and directions; under a local rule one
/// microbatch.
inline std::vector<std::vector<std::pair<int, int>>> losses_of(const run& r) {
  std::map<std::pair<int, int>, std::set<std::pair<int, int>>> by_version;
  for (const auto& u : updates_of(r))
    if (u.stage == r.stages - 1 && r.shard_of(u.rank) == 0)
      for (const int m : u.microbatches)
        by_version[{r.is_local_rule() ? m : u.version, 0}].insert(
          {r.replica_of(u.rank), m});
  std::vector<std::vector<std::pair<int, int>>> result;
  for (const auto& [version, all] : by_version)
    result.emplace_back(all.begin(), all.end());
  return result;
}

/// Largest number of stage-microbatches that a rank holds at once, from the times of
/// changes.
inline int most_held(const row& all) {
  // At equal times an end comes before a start.
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const auto& a : all) {
    if (a.expert)
      continue;
    if (a.kind == 'F' && !a.goes_on)
      changes.emplace_back(a.start, 1);
    if (a.sums() && !a.part)
      changes.emplace_back(a.end, -1);
  }
  std::sort(changes.begin(), changes.end());
  int held = 0, most = 0;
  for (const auto& [time, by] : changes)
    most = std::max(most, held += by);
  return most;
}

} // namespace recorded
