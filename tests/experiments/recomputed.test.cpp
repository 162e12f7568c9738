// SPDX-License-Identifier: BSD-3-Clause
// Computes every number of results.json, the table, traces and event files again from
// the record, by the definitions of docs/results.md. The runs have sizes that all
// differ, and are fresh or resumed.

#include "tests/experiments/events_read.hpp"
#include "tests/experiments/recorded.hpp"
#include "tests/experiments/run_program.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

namespace recorded {

namespace {

using Catch::Matchers::ContainsSubstring;

double approximately(const json& x) {
  return x.get<double>();
}

template <class Values>
double sum(const Values& values) {
  double result = 0;
  for (const auto& x : values)
    result += static_cast<double>(x);
  return result;
}

template <class Values>
double mean(const Values& values) {
  return values.empty() ? 0 : sum(values) / static_cast<double>(values.size());
}

double largest(const json& values) {
  double result = 0;
  for (const double x : values)
    result = std::max(result, x);
  return result;
}

Catch::Approx about(double x) {
  return Catch::Approx(x).epsilon(1e-12).margin(1e-15);
}

std::string printed(const char* format, double x) {
  char text[64];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

std::string whole(double x) {
  return printed("%.0f", x);
}

void check_times(const run& r) {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> busy, span_idle;
  for (const auto& row : r.ranks) {
    std::int64_t length = 0, end = 0;
    for (const auto& a : row) {
      length += a.length();
      end = std::max(end, a.end);
    }
    makespan = std::max(makespan, end);
    busy.push_back(length);
    span_idle.push_back(end - row.front().start - length);
  }
  const auto& told = r.results;
  CHECK(approximately(told["makespan"]) == about(1e-9 * static_cast<double>(makespan)));
  std::vector<double> shares, ideal;
  REQUIRE(told["busy"].size() == busy.size());
  for (std::size_t rank = 0; rank < busy.size(); ++rank) {
    INFO("rank " << rank);
    const auto idle = static_cast<double>(makespan - busy[rank]),
               works = static_cast<double>(busy[rank]);
    CHECK(approximately(told["busy"][rank]) == about(1e-9 * works));
    CHECK(approximately(told["idle"][rank]) == about(1e-9 * idle));
    CHECK(approximately(told["span_idle"][rank])
          == about(1e-9 * static_cast<double>(span_idle[rank])));
    CHECK(told["peak_activations"][rank] == most_held(r.ranks[rank]));
    shares.push_back(idle / static_cast<double>(makespan));
    ideal.push_back(idle / works);
  }
  CHECK(approximately(told["bubble"]) == about(mean(shares)));
  CHECK(approximately(told["bubble_ideal"]) == about(mean(ideal)));
}

/// Checks versions and updates.
/// \param before number of updates of each stage before the run
void check_versions(const run& r, const json& before) {
  std::vector<int> alive(static_cast<std::size_t>(r.stages), 1);
  r.for_each([&](std::size_t, const action& a) {
    auto& most = alive[static_cast<std::size_t>(a.stage)];
    most = std::max(most, a.alive);
  });
  CHECK(r.results["weight_versions"] == alive);
  std::vector<std::vector<int>> stale(alive.size());
  std::vector<std::map<int, int>> made(alive.size()); // newest version, by data replica
  for (const auto& u : updates_of(r)) {
    const auto stage = static_cast<std::size_t>(u.stage);
    stale[stage].insert(stale[stage].end(), u.staleness.begin(), u.staleness.end());
    made[stage][r.is_alone() ? r.replica_of(u.rank) : 0] = u.version;
  }
  for (std::size_t s = 0; s < stale.size(); ++s) {
    INFO("stage " << s);
    REQUIRE_FALSE(stale[s].empty());
    CHECK(r.results["staleness"]["max"][s] == *std::ranges::max_element(stale[s]));
    CHECK(approximately(r.results["staleness"]["mean"][s]) == about(mean(stale[s])));
    if (r.results["updates"].is_null())
      continue;
    std::int64_t updates = before.is_null() ? 0 : before[s].get<std::int64_t>();
    for (const auto& [replica, version] : made[s])
      updates += version;
    CHECK(r.results["updates"][s] == updates);
  }
}

void check_losses(const run& r) {
  std::map<std::tuple<int, int>, std::int64_t> ends; // ends of forwards, by loss
  r.for_each([&](std::size_t rank, const action& a) {
    if (a.kind == 'F' && a.stage == r.stages - 1 && !a.part && !a.expert
        && r.shard_of(rank) == 0)
      ends[{r.replica_of(rank), a.microbatch}] = a.end;
  });
  const auto& told = r.results;
  const auto losses = losses_of(r);
  REQUIRE(told["loss"].size() == losses.size());
  REQUIRE(told["loss_every"] == 1);
  const std::int64_t batch = r.data["batch"],
                     before = told["steps_before"].get<std::int64_t>() * batch;
  std::int64_t seen = before;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    std::int64_t last = 0;
    for (const auto& [replica, m] : losses[i]) {
      seen += r.samples_of(replica, m);
      last = std::max(last, ends.at({replica, m}));
    }
    CHECK(told["loss_samples"][i] == seen);
    CHECK(approximately(told["loss_seconds"][i])
          == about(1e-9 * static_cast<double>(last)));
    CHECK(told["loss"][i] > 0);
  }
  CHECK(told["samples"] == seen - before);
  const auto seconds = approximately(told["makespan"]);
  CHECK(approximately(told["samples_per_second"])
        == about(static_cast<double>(seen - before) / seconds));
  double tokens = 0;
  for (int n = 0; n < r.replicas; ++n)
    for (int m = 0; m < r.share && r.model.contains("seq"); ++m)
      tokens += static_cast<double>(r.tokens_of(n, m));
  if (r.model.contains("seq"))
    CHECK(approximately(told["tokens_per_second"])
          == about(static_cast<double>(seen - before) / seconds * tokens
                   / static_cast<double>(batch)));
  else
    CHECK(told["tokens_per_second"].is_null());
  CHECK(told["seconds"].is_null());
  for (const auto& one : told["evaluations"])
    CHECK(one["samples"] == one["steps"].get<std::int64_t>() * batch);
}

/// Checks when a loss was reached, and the loss at a time. The losses of single samples
/// are averaged.
/// \param shortest the least of the last times of all runs
void check_reached(const run& r, double shortest) {
  const auto& told = r.results;
  const std::int64_t batch = r.data["batch"],
                     before = told["steps_before"].get<std::int64_t>() * batch;
  const auto window = static_cast<std::size_t>(8 * batch);
  std::vector<double> of_samples; // losses
  std::optional<double> at_shortest;
  bool is_past = false; // the shortest time
  std::optional<std::size_t> reached;
  const auto& target = told["target"];
  for (std::size_t i = 0; i < told["loss"].size(); ++i) {
    const auto end = told["loss_samples"][i].get<std::int64_t>() - before;
    of_samples.resize(static_cast<std::size_t>(end), told["loss"][i].get<double>());
    const auto count = std::min(window, of_samples.size());
    const double mean =
      sum(std::vector<double>(of_samples.end() - static_cast<std::ptrdiff_t>(count),
                              of_samples.end()))
      / static_cast<double>(count);
    is_past = is_past || told["loss_seconds"][i] > shortest;
    if (!is_past)
      at_shortest = mean;
    if (!reached && count == window && !target.is_null() && mean <= target["loss"])
      reached = i;
  }
  const auto& after = told["after_shortest"];
  CHECK(after["seconds"] == shortest);
  CHECK(after["loss"].is_null() != at_shortest.has_value());
  if (at_shortest)
    CHECK(approximately(after["loss"]) == about(*at_shortest));
  if (target.is_null())
    return;
  REQUIRE(target["samples"].is_null() != reached.has_value());
  if (reached) {
    CHECK(target["samples"]
          == told["loss_samples"][*reached].get<std::int64_t>() - before);
    CHECK(target["seconds"] == told["loss_seconds"][*reached]);
  }
}

/// Checks activations and gradients between stages, for a model of tokens.
void check_messages(const run& r) {
  if (!r.model.contains("seq"))
    return;
  const int each = r.results["precision"] == "bf16" ? 2 : 4;
  const int cut = r.results["sequence_parallel"] == true ? r.shards : 1;
  std::int64_t bytes = 0;
  r.for_each([&](std::size_t rank, const action& a) {
    const int to = a.kind == 'F' ? a.stage + 1 : a.goes_back() ? a.stage - 1 : -1;
    if (a.part || a.expert || to < 0 || to == r.stages)
      return;
    bytes += r.tokens_of(r.replica_of(rank), a.microbatch) / cut
             * r.model["d_model"].get<std::int64_t>() * each;
  });
  CHECK(r.results["bytes_moved"]["pipeline"] == bytes);
}

void check_experts(const run& r) {
  if (r.results["experts"].is_null())
    return;
  double tokens = 0;
  for (int n = 0; n < r.replicas; ++n)
    for (int m = 0; m < r.share; ++m)
      tokens += static_cast<double>(r.tokens_of(n, m));
  for (const auto& layer : r.results["experts"]) {
    CHECK(layer["steps"] == 1);
    CHECK(static_cast<int>(layer["loads"].size())
          == r.results["steps"].get<int>() - r.results["steps_before"].get<int>());
    for (std::size_t i = 0; i < layer["loads"].size(); ++i)
      CHECK(sum(layer["loads"][i].get<std::vector<double>>())
              + layer["dropped"][i].get<double>()
            == tokens * r.model["experts"]["top_k"].get<double>());
  }
}

/// "fullest / mean, dropped%" of the last tenth of the entries.
std::string told_of_experts(const json& layers) {
  double worst = 0, dropped = 0, rows = 0;
  for (const auto& layer : layers) {
    const auto& loads = layer["loads"];
    std::vector<double> sums(loads[0].size());
    const auto tenth =
      static_cast<std::size_t>(std::ceil(static_cast<double>(loads.size()) / 10));
    for (std::size_t i = loads.size() - tenth; i < loads.size(); ++i) {
      for (std::size_t e = 0; e < sums.size(); ++e)
        sums[e] += loads[i][e].get<double>();
      dropped += layer["dropped"][i].get<double>();
    }
    worst = std::max(worst, *std::ranges::max_element(sums) / mean(sums));
    rows += mean(sums) * static_cast<double>(sums.size());
  }
  return printed("%.2f", worst) + ", "
         + printed("%.1f%%", 100 * dropped / (rows + dropped));
}

/// The cells of a table's row, by column name.
std::map<std::string, std::string> cells_of(const std::string& table, std::size_t row) {
  std::istringstream lines{table.substr(table.find("\nschedule ") + 1)};
  const auto words = [&] {
    std::string line;
    std::getline(lines, line);
    std::vector<std::string> result;
    for (std::size_t begin = 0; begin < line.size();) {
      const auto end = std::min(line.find("  ", begin), line.size());
      result.push_back(line.substr(begin, end - begin));
      begin = std::min(line.find_first_not_of(' ', end), line.size());
    }
    return result;
  };
  const auto heads = words();
  for (std::size_t i = 0; i < row; ++i)
    (void)words();
  const auto cells = words();
  REQUIRE(cells.size() == heads.size());
  std::map<std::string, std::string> result;
  for (std::size_t i = 0; i < heads.size(); ++i)
    result[heads[i]] = cells[i];
  return result;
}

/// The mean loss of the last samples of a run.
double last_loss(const json& told, double samples) {
  double all = 0, left = samples;
  for (auto i = told["loss"].size(); i-- > 0 && left > 0;) {
    const double end = told["loss_samples"][i];
    const double begin = i > 0 ? told["loss_samples"][i - 1].get<double>()
                               : end - told["samples"].get<double>();
    const auto part = std::min(i > 0 ? end - begin : left, left);
    all += part * told["loss"][i].get<double>();
    left -= part;
  }
  return all / (samples - left);
}

void check_table(const json& results, const std::string& out) {
  double shortest = 1e30, samples = 0;
  for (const auto& told : results["runs"]) {
    shortest = std::min(shortest, told["makespan"].get<double>());
    const auto& seen = told["loss_samples"];
    const double last =
      seen.size() > 1 ? seen.back().get<double>() - seen[seen.size() - 2].get<double>()
                      : told["samples"].get<double>();
    samples = std::max({samples, results["data"]["batch"].get<double>(), last});
  }
  const auto [unit, length] = shortest >= 0.1      ? std::pair{"s", 1.0}
                              : shortest >= 0.1e-3 ? std::pair{"ms", 1e-3}
                              : shortest >= 0.1e-6 ? std::pair{"us", 1e-6}
                                                   : std::pair{"ns", 1e-9};
  CHECK_THAT(
    out, ContainsSubstring("loss: mean over the last " + whole(samples) + " samples"));
  for (std::size_t i = 0; i < results["runs"].size(); ++i) {
    const auto& told = results["runs"][i];
    auto cells = cells_of(out, i);
    const auto cell = [&](const std::string& head) {
      INFO(head);
      REQUIRE(cells.contains(head));
      return cells.extract(head).mapped();
    };
    INFO(cell("schedule"));
    CHECK(cell("samples/s") == printed("%.1f", told["samples_per_second"]));
    CHECK(cell("timing") == told["timing"].get<std::string>());
    CHECK(cell(std::string{"makespan "} + unit)
          == printed("%.3f", told["makespan"].get<double>() / length));
    std::vector<std::int64_t> idle; // whole nanoseconds, as halves are rounded
    for (const double x : told["idle"])
      idle.push_back(std::llround(1e9 * x));
    CHECK(cell(std::string{"idle "} + unit)
          == printed("%.3f", mean(idle) / std::round(1e9 * length)));
    CHECK(cell("bubble") == printed("%.1f%%", 100 * told["bubble"].get<double>()));
    CHECK(cell("activations") == whole(largest(told["peak_activations"])));
    CHECK(cell("MiB/rank")
          == printed("%.1f", largest(told["peak_bytes"]) / (1024 * 1024)));
    CHECK(cell("versions") == whole(largest(told["weight_versions"])));
    CHECK(cell("staleness")
          == whole(largest(told["staleness"]["max"]))
               + printed(" (%.2f)", largest(told["staleness"]["mean"])));
    CHECK(cell("loss") == printed("%.4f", last_loss(told, samples)));
    const auto in_units = [unit_length = length](const json& seconds) {
      return printed("%.3f", seconds.get<double>() / unit_length);
    };
    const auto unless_unknown = [](const char* format, const json& value) {
      return value.is_null() ? "-" : printed(format, value);
    };
    if (results["runs"].size() > 1) {
      const auto& after = told["after_shortest"];
      CHECK(cell("loss at " + in_units(after["seconds"]) + " " + unit)
            == unless_unknown("%.4f", after["loss"]));
    }
    if (const auto& target = told["target"]; !target.is_null()) {
      const auto name = " to " + printed("%.3f", target["loss"]);
      CHECK(cell("samples" + name) == unless_unknown("%.0f", target["samples"]));
      CHECK(cell(unit + name)
            == (target["seconds"].is_null() ? "-" : in_units(target["seconds"])));
    }
    CHECK(cell("evaluated") == printed("%.4f", told["evaluation"]["loss"]));
    if (told["tokens_per_second"].is_null())
      CHECK(cell("accuracy")
            == printed("%.1f%%", 100 * told["evaluation"]["accuracy"].get<double>()));
    else
      CHECK(cell("tokens/s") == printed("%.0f", told["tokens_per_second"]));
    CHECK(cells.empty()); // each column is checked
    if (!told["experts"].is_null())
      CHECK_THAT(out, ContainsSubstring(": " + told_of_experts(told["experts"])));
    if (const auto& of = told["exchange_staleness"]; !of.is_null())
      CHECK_THAT(out, ContainsSubstring(": " + whole(largest(of["max"]))
                                        + printed(" (%.2f)", largest(of["mean"]))));
  }
}

json with_phase(const json& trace, const std::string& phase) {
  auto result = json::array();
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == phase)
      result.push_back(event);
  return result;
}

void check_slices(const run& r, const json& trace) {
  std::map<std::size_t, std::vector<json>> slices;
  for (const auto& one : with_phase(trace, "X"))
    slices[one["tid"]].push_back(one);
  const auto updates = updates_of(r);
  auto next = updates.begin();
  for (std::size_t rank = 0; rank < r.ranks.size(); ++rank) {
    REQUIRE(slices[rank].size() == r.ranks[rank].size());
    for (std::size_t i = 0; i < slices[rank].size(); ++i) {
      const auto& a = r.ranks[rank][i];
      const auto& one = slices[rank][i];
      const auto& args = one["args"];
      INFO("rank " << rank << ", " << one.dump());
      CHECK(one["cat"] == std::string{a.kind});
      CHECK(std::llround(1000 * one["ts"].get<double>()) == a.start);
      CHECK(std::llround(1000 * one["dur"].get<double>()) == a.length());
      CHECK(args["stage"] == a.stage);
      CHECK(args["microbatch"] == a.microbatch);
      CHECK(args["version"] == a.version);
      if (r.results["replicas"] > 1)
        CHECK(args["replica"] == a.pipeline / r.shards);
      if (r.shards > 1)
        CHECK(args["tensor shard"] == a.pipeline % r.shards);
      if (a.kind != 'U' || a.part)
        continue;
      CHECK(args["gradients"] == next->microbatches.size());
      CHECK(args["staleness"] == *std::ranges::max_element(next->staleness));
      ++next;
    }
  }
}

/// The values of a rank's counter, with their times in nanoseconds.
using curve = std::vector<std::pair<std::int64_t, int>>;

curve told_by(const json& trace, const std::string& counter, std::size_t rank) {
  curve result;
  for (const auto& one : with_phase(trace, "C"))
    if (one["name"] == counter + " of rank " + std::to_string(rank))
      result.emplace_back(std::llround(1000 * one["ts"].get<double>()),
                          one["args"][counter]);
  return result;
}

void check_counters(const run& r, const json& trace) {
  for (std::size_t rank = 0; rank < r.ranks.size(); ++rank) {
    INFO("rank " << rank);
    curve held, alive;
    int now = 0, all = 0;
    std::map<std::pair<int, int>, int> versions; // versions of each stage
    for (const auto& a : r.ranks[rank])
      if (!a.part && !a.expert
          && versions.emplace(std::pair{a.pipeline, a.stage}, a.alive).second)
        all += a.alive;
    alive.emplace_back(0, all);
    for (const auto& a : r.ranks[rank]) {
      if (a.expert)
        continue;
      if (a.kind == 'F' && !a.goes_on)
        held.emplace_back(a.start, ++now);
      if (a.sums() && !a.part)
        held.emplace_back(a.end, --now);
      auto& of_stage = versions[{a.pipeline, a.stage}];
      if (a.part || of_stage == a.alive)
        continue;
      all += a.alive - of_stage;
      of_stage = a.alive;
      alive.emplace_back(a.end, all);
    }
    CHECK((told_by(trace, "activations", rank) == held));
    CHECK((told_by(trace, "weight versions", rank) == alive));
    CHECK(now == 0);
  }
}

void check_arrows(const run& r, const json& trace) {
  using end = std::tuple<std::size_t, std::int64_t>; // rank and nanoseconds
  std::map<std::tuple<bool, int, int, int>, end> sent, used;
  r.for_each([&](std::size_t rank, const action& a) {
    if (a.expert || (a.kind != 'F' && !a.goes_back()))
      return;
    const bool back = a.kind != 'F';
    const int from = a.stage + (back ? 1 : -1);
    if (!a.part)
      sent[{back, a.pipeline, a.stage, a.microbatch}] = {rank, a.end};
    if (!a.goes_on)
      used[{back, a.pipeline, from, a.microbatch}] = {rank, a.start};
  });
  std::multiset<std::pair<end, end>> expected, told;
  for (const auto& [message, from] : sent)
    if (const auto to = used.find(message); to != used.end())
      expected.emplace(from, to->second);
  const auto starts = with_phase(trace, "s"), ends = with_phase(trace, "f");
  REQUIRE(starts.size() == ends.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    CHECK(starts[i]["id"] == ends[i]["id"]);
    const auto at = [](const json& one) {
      return end{one["tid"], std::llround(1000 * one["ts"].get<double>())};
    };
    auto from = at(starts[i]);
    ++std::get<1>(from); // within the slice that sent it
    told.emplace(from, at(ends[i]));
  }
  CHECK((told == expected));
}

void check_events(const json& results, const json& told,
                  const std::filesystem::path& folder) {
  const auto files = tensorboard::files_in(folder);
  const auto newest = std::ranges::max_element(
    files, {}, [](const auto& file) { return std::filesystem::last_write_time(file); });
  auto all = tensorboard::events_of(content_of(*newest));
  using points = std::vector<tensorboard::point>;
  const auto taken = [&](const std::string& tag) {
    auto found = all.scalars.extract(tag);
    return found ? found.mapped() : points{};
  };
  points losses, evaluated, accuracies;
  for (std::size_t i = 0; i < told["loss"].size(); ++i)
    losses.push_back({told["loss_samples"][i], told["loss"][i]});
  const auto add = [&](std::int64_t samples, const json& score) {
    evaluated.push_back({samples, score["loss"]});
    if (!score["accuracy"].is_null())
      accuracies.push_back({samples, score["accuracy"]});
  };
  const std::int64_t last = told["loss_samples"].back();
  for (const auto& one : told["evaluations"])
    add(one["samples"], one);
  if (told["evaluations"].empty() || told["evaluations"].back()["samples"] != last)
    add(last, told["evaluation"]);
  CHECK(taken("loss") == losses);
  for (const auto& [tag, key] : {std::pair{"gradient_norm", "gradient_norms"},
                                 {"learning_rate", "learning_rates"}}) {
    points updates;
    for (std::size_t i = 0; !told[key].is_null() && i < told[key].size(); ++i)
      updates.push_back({told["loss_samples"][i], told[key][i]});
    CHECK(taken(tag) == updates);
  }
  CHECK(taken("evaluation/loss") == evaluated);
  CHECK(taken("evaluation/accuracy") == accuracies);
  const auto at_end = [&](double x) { return points{{last, static_cast<float>(x)}}; };
  CHECK(taken("schedule/bubble") == at_end(told["bubble"]));
  CHECK(taken("schedule/activations") == at_end(largest(told["peak_activations"])));
  CHECK(taken("schedule/weight_versions") == at_end(largest(told["weight_versions"])));
  CHECK(taken("schedule/staleness") == at_end(largest(told["staleness"]["max"])));
  (void)taken("samples_per_second"); // depends on wall time
  CHECK(all.scalars.empty());        // each tag is checked
  const auto before = told["steps_before"].get<std::int64_t>()
                      * results["data"]["batch"].get<std::int64_t>();
  CHECK(all.starts == std::vector<std::int64_t>{before > 0 ? before + 1 : 0});
}

/// Checks all files that a program has left in a folder.
/// \param before results.json of the run from which this one resumes; null if none
json check_all(const temporary_folder& folder, const std::string& typed,
               const json& before = nullptr) {
  INFO(typed);
  const auto ran = run_program_in(
    folder, typed + " --clock virtual --report r --tensorboard tb --json r.json");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  const auto page = data_of_page(content_of(folder.path() / "r" / "report.html"));
  CHECK(page["results"] == results);
  CHECK(json::parse(content_of(folder.path() / "r" / "results.json")) == results);
  REQUIRE(page["runs"].size() == results["runs"].size());
  check_table(results, ran.out);
  check_table(results, "\n" + page["table"].get<std::string>());
  double shortest = std::numeric_limits<double>::infinity();
  for (const auto& told : results["runs"])
    shortest = std::min(shortest, largest(told["loss_seconds"]));
  for (std::size_t i = 0; i < results["runs"].size(); ++i) {
    const run r{results, page, i};
    const std::string text = page["runs"][i]["text"];
    INFO(text);
    REQUIRE(page["runs"][i]["cut"] == 0);
    CHECK(page["runs"][i]["timing"] == "virtual");
    CHECK(page["runs"][i]["microbatches"] == r.share);
    CHECK(r.results["ranks"] == r.ranks.size());
    r.for_each([&](std::size_t rank, const action& a) {
      CHECK(a.pipeline % r.shards == r.shard_of(rank));
      CHECK(a.pipeline / r.shards / r.directions == r.replica_of(rank));
    });
    check_times(r);
    check_versions(r, before.is_null() ? before : before["runs"][i]["updates"]);
    check_losses(r);
    check_reached(r, shortest);
    check_messages(r);
    check_experts(r);
    const auto trace =
      json::parse(content_of(folder.path() / "r" / ("trace-" + text + ".json")));
    check_slices(r, trace);
    check_counters(r, trace);
    check_arrows(r, trace);
    check_events(results, r.results, folder.path() / "tb" / text);
  }
  return results;
}

const std::string gpt = " --d-model 8 --heads 2 --vocab 12 --layers 6 --optimizer sgd";
const std::string uneven =
  " --seq 5 --microbatches 6 --batch 13 --microbatch-sizes 1,4,2,3,2,1"
  " --sequence-lengths 5,2,3,1";

} // namespace

TEST_CASE("all numbers of schedules side by side are what their records say",
          "[recomputed]") {
  const temporary_folder folder;
  const std::string typed = GENERATE(
    "compare --schedules "
    "gpipe,1f1b,zb-h1,pipedream,pipedream:update_every=2,2bw,ampnet "
    "--stages 3 --steps 3 --cost F=3,B=7,W=2,U=1 --evaluate-every 2"
      + gpt + uneven,
    "compare --schedules interleaved,zb-v,chimera,dualpipe --mesh data=3,pipe=2 "
    "--steps 2 "
    "--seq 4 --microbatches 12 --batch 25"
      + gpt,
    "compare --schedules 1f1b,pipedream --mesh data=3,pipe=2 --exchange server:async "
    "--cost F=1,B=2,replica=1/1/2.5 --seq 4 --microbatches 12 --batch 25 --steps 3"
      + gpt,
    "compare --schedules 1f1b,pipedream --model mlp --layers 5 --d-model 6 --stages 4 "
    "--microbatches 3 --batch 11 --steps 12 --evaluate-every 5 --target-loss 2.35");
  check_all(folder, typed);
}

TEST_CASE("all numbers of shards, replicas and lengths are what their records say",
          "[recomputed]") {
  const temporary_folder folder;
  const std::string typed = GENERATE(
    "train --schedule 1f1b --mesh data=3,pipe=5,tensor=2 --exchange zero1 --clip 0.3 "
    "--steps 2"
      + gpt + uneven,
    "train --schedule zb-h1 --mesh pipe=3,tensor=2 --sequence-parallel --steps 2 "
    "--seq 6 --microbatches 4 --batch 9"
      + gpt,
    "train --schedule pipedream --recompute stage --mesh data=2,pipe=3 --steps 2" + gpt
      + uneven);
  check_all(folder, typed);
}

TEST_CASE("the share of other programs is of the actions' wall time", "[recomputed]") {
  const temporary_folder folder;
  const auto ran = run_program_in(
    folder, "train --schedule 1f1b --stages 3 --threads 1 --steps 3 --seq 4 "
            "--microbatches 4 --batch 8 --json r.json"
              + gpt);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  const auto& told = results["runs"][0];
  REQUIRE(told["timing"] == "modelled");
  const auto& others = told["other_programs"];
  const double taken = sum(others["seconds"].get<std::vector<double>>()),
               busy = sum(told["busy"].get<std::vector<double>>());
  const double share = others["share"];
  CHECK(share == about(taken / (taken + busy)));
  CHECK(others["warning"].is_null() == (share <= 0.1));
  CHECK(cells_of("\n" + ran.out, 0).at("other programs")
        == printed("%.1f%%", 100 * share));
  CHECK((ran.out.find("\nwarning: other programs took more than 10%") != ran.out.npos)
        == (share > 0.1));
}

TEST_CASE("the loads of experts that a table tells are those of the last tenth",
          "[recomputed]") {
  const temporary_folder folder;
  check_all(folder, "train --schedule 1f1b --model moe --experts 4 --capacity 1 --gate "
                    "gshard --mesh data=4,pipe=3,expert=2 --seq 4 --microbatches 8 "
                    "--batch 17 --steps 23 --lr 0.3"
                      + gpt);
}

TEST_CASE("all numbers of a resumed run are what its record says", "[recomputed]") {
  const temporary_folder folder;
  const auto [schedule, mesh] =
    GENERATE(table<std::string, std::string>({{"1f1b", "--mesh data=3,pipe=2,tensor=2"},
                                              {"pipedream", "--mesh data=2,pipe=3"},
                                              {"2bw", "--stages 4"},
                                              {"chimera", "--mesh data=3,pipe=2"}}));
  const auto typed = "train --schedule " + schedule + " " + mesh
                     + " --evaluate-every 2 --checkpoint c --checkpoint-every 3" + gpt
                     + (schedule == "2bw" || schedule == "chimera"
                          ? " --seq 4 --microbatches 12 --batch 25"
                          : uneven);
  const auto before = check_all(folder, typed + " --steps 3");
  std::filesystem::remove_all(folder.path() / "r");
  const auto after = check_all(folder, typed + " --steps 8 --resume c", before);
  CHECK(after["runs"][0]["steps"] == 8);
  CHECK(after["runs"][0]["steps_before"] == 3);
  CHECK(after["runs"][0]["samples"] == 5 * after["data"]["batch"].get<int>());
}

} // namespace recorded
