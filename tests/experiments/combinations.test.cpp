// SPDX-License-Identifier: BSD-3-Clause
// Tests docs/combinations.md: the programs accept each cell that says "yes", refuse
// each cell that says "no", and need the options after each "with".

#include "actors/nodes/node_maps.hpp"
#include "actors/proof/proof.hpp"
#include "experiments/options/command_line.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/session/verification.hpp"
#include "schedules/catalog/catalog.hpp"
#include "tests/experiments/documents.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>

namespace troupe::combinations_test {

namespace {

using words = std::vector<std::string>;

words words_of(const std::string& text) {
  std::istringstream from{text};
  return {std::istream_iterator<std::string>{from}, {}};
}

/// Options of a run: each option once, with the axes of --mesh in one value.
class command {
public:
  void add(const std::string& text) {
    const auto all = words_of(text);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool has_value = i + 1 < all.size() && !all[i + 1].starts_with("--");
      const auto& name = all[i];
      const auto value = has_value ? all[++i] : std::string{};
      if (name == "--mesh")
        add_axes(value);
      else if (name.starts_with("--"))
        options_[name] = value;
      else // after the schedule
        schedule_ += (schedule_.find(':') == std::string::npos ? ":" : ",") + name;
    }
  }

  void set_schedule(const std::string& text) { schedule_ = text; }

  words line() const {
    words result{"train", "--schedule", schedule_, "--mesh"};
    std::string mesh;
    for (const auto& [axis, size] : axes_)
      mesh += (mesh.empty() ? "" : ",") + axis + "=" + size;
    result.push_back(mesh);
    for (const auto& [name, value] : options_) {
      result.push_back(name);
      if (!value.empty())
        result.push_back(value);
    }
    return result;
  }

private:
  void add_axes(const std::string& text) {
    std::istringstream from{text};
    for (std::string axis; std::getline(from, axis, ',');)
      axes_[axis.substr(0, axis.find('='))] = axis.substr(axis.find('=') + 1);
  }

  std::string schedule_ = "1f1b";
  std::map<std::string, std::string> axes_{{"pipe", "4"}},
    options_{{"--layers", "8"},  {"--d-model", "8"}, {"--heads", "2"},
             {"--seq", "4"},     {"--vocab", "7"},   {"--microbatches", "16"},
             {"--threads", "1"}, {"--steps", "1"}};
};

/// Returns the error that refuses a run before its start; empty if the run is accepted.
std::string refusal_of(const words& line) {
  static const program_info about{.name = "train",
                                  .description = "",
                                  .resumes = true,
                                  .distributes = true,
                                  .defaults = {.schedules = {.names = {"1f1b"}}}};
  std::vector<const char*> arguments;
  for (const auto& word : line)
    arguments.push_back(word.c_str());
  std::stringstream said;
  auto* const before = std::cerr.rdbuf(said.rdbuf());
  const auto read =
    read_command_line(about, static_cast<int>(arguments.size()), arguments.data());
  std::cerr.rdbuf(before);
  if (!read)
    return said.str();
  const bool elsewhere = !read->nodes.nodes.empty();
  const auto shared =
    set_up_part(*read, elsewhere ? std::optional{std::vector<int>{}} : std::nullopt);
  if (!shared)
    return shared.error();
  const auto& plan = shared->runs.front().plan;
  if (read->evaluation.verify > 0)
    if (auto wrong = proof_error(plan); !wrong.empty())
      return wrong;
  if (!elsewhere)
    return {};
  const auto count = static_cast<int>(read->nodes.nodes.size());
  const auto places =
    read->nodes.node_map.empty() ? default_node_map(plan, count) : read->nodes.node_map;
  auto wrong = node_map_error(plan, places, count);
  if (wrong.empty() && plan.copies.keep_steps)
    wrong = redundancy_error(plan, places);
  return wrong;
}

/// All options of a cell that stand in backticks.
std::string quoted(const std::string& cell) {
  static const std::regex code{"`([^`]+)`"};
  std::string result;
  for (std::sregex_iterator i{cell.begin(), cell.end(), code}, end; i != end; ++i)
    result += (*i)[1].str() + " ";
  return result;
}

words names_in(const std::string& cell) {
  return words_of(quoted(cell));
}

struct page {
  std::map<std::string, std::string> features;                 ///< Options, by feature.
  std::map<std::string, std::vector<documents::table>> tables; ///< Tables, by section.
};

page read_page() {
  page result;
  for (const auto& part : documents::sections_of(std::filesystem::path{TROUPE_GOLDEN}
                                                 / "../../docs/combinations.md"))
    result.tables[part.name] = part.tables;
  for (const auto& table : result.tables["Features"])
    for (const auto& row : table.rows)
      result.features[row[0]] = quoted(row[1]);
  return result;
}

/// Compares a cell with the programs' answer.
void check_cell(const std::string& cell, const command& asked) {
  const auto wrong = refusal_of(asked.line());
  std::string line;
  for (const auto& word : asked.line())
    line += word + " ";
  INFO(line << "\n" << cell << "\n" << wrong);
  REQUIRE((cell == "yes" || cell == "no" || cell.starts_with("with ")));
  CHECK(wrong.empty() == (cell == "yes"));
  if (cell == "yes" || cell == "no")
    return;
  auto with = asked;
  with.add(quoted(cell));
  CHECK(refusal_of(with.line()).empty());
}

/// Checks all cells of tables whose columns are features. Returns the names of the
/// rows.
/// \param set adds the options of a row's name to a command
template <class Set>
std::set<std::string> check_tables(const page& of, const std::string& section,
                                   const Set& set) {
  std::set<std::string> result;
  const auto tables = of.tables.at(section);
  for (const auto& table : tables)
    for (const auto& row : table.rows)
      for (const auto& name : names_in(row[0])) {
        result.insert(name);
        for (std::size_t c = 1; c < table.head.size(); ++c) {
          command asked;
          asked.add(of.features.at(table.head[c]));
          set(asked, name, of.features.at(table.head[c]));
          check_cell(row.at(c), asked);
        }
      }
  return result;
}

} // namespace

TEST_CASE("schedules combine with features as docs/combinations.md says",
          "[documents]") {
  const auto all = read_page();
  const auto named = check_tables(
    all, "Schedules", [](command& to, const std::string& name, const std::string& of) {
      to.set_schedule(name);
      if (of.find("clip=stage") != std::string::npos)
        to.add("clip=stage");
    });
  for (const auto& entry : catalog())
    CHECK(named.contains(std::string{entry.name}));
}

TEST_CASE("exchanges combine with features as docs/combinations.md says",
          "[documents]") {
  const auto named =
    check_tables(read_page(), "Exchanges of data replicas",
                 [](command& to, const std::string& name, const std::string&) {
                   to.add("--mesh data=2 --exchange " + name);
                 });
  for (const auto& entry : exchange_catalog())
    CHECK(named.contains(std::string{entry.name}));
}

TEST_CASE("features combine with each other as docs/combinations.md says",
          "[documents]") {
  const auto all = read_page();
  int cells = 0;
  for (const auto& table : all.tables.at("Features with each other"))
    for (const auto& row : table.rows)
      for (std::size_t c = 1; c < row.size(); ++c)
        if (!row[c].empty()) {
          ++cells;
          command asked;
          asked.add(all.features.at(row[0]));
          asked.add(all.features.at(table.head[c]));
          check_cell(row[c], asked);
        }
  CHECK(cells == 78);
}

} // namespace troupe::combinations_test
