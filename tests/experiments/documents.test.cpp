// SPDX-License-Identifier: BSD-3-Clause
// Compares the documents' numbers with the output of the documents' commands, except
// numbers that depend on wall time. Pictures are compared line by line, and measured
// rows of tables cell by cell. Times and percentages are checked in the paragraph
// before a command.

#include "tests/experiments/documents.hpp"

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

namespace troupe::documents_test {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path root = fs::path{TROUPE_GOLDEN} / ".." / "..";

std::vector<documents::section> all_sections() {
  std::vector<fs::path> files{root / "README.md"};
  for (const auto& entry : fs::directory_iterator{root / "docs"})
    if (entry.path().extension() == ".md" && entry.path().stem() != "CHANGELOG")
      files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<documents::section> result;
  for (const auto& file : files)
    for (auto& one : documents::sections_of(file))
      result.push_back(std::move(one));
  return result;
}

/// A folder with a `troupe` script that starts the built programs.
struct workplace : temporary_folder {
  workplace() {
    const auto programs = fs::path{program_path("train")}.parent_path();
    write("troupe", "#!/bin/sh\nname=$1\nshift\nexec '" + programs.string()
                      + "'/\"$name\" \"$@\"\n");
    fs::permissions(path() / "troupe", fs::perms::owner_all);
  }
};

/// The output of a command, followed by its errors. Each command runs once.
const std::string& printed(const std::string& command) {
  static std::map<std::string, std::string> known;
  const auto [place, is_new] = known.try_emplace(command);
  if (is_new) {
    const workplace folder;
    const auto ran = run_shell_in(folder, command);
    place->second = ran.out + ran.err;
  }
  return place->second;
}

bool is_simulation(const std::string& command) {
  return command.starts_with("./troupe simulate ")
         && command.find("file:") == std::string::npos
         && command.find("--export") == std::string::npos;
}

// -- pictures

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    result.push_back(line);
  }
  return result;
}

/// Whether a line matches a drawn line; " ..." stands for the rest of a line.
bool is_line(const std::string& drawn, const std::string& line) {
  constexpr std::string_view rest = " ...";
  return drawn.ends_with(rest)
           ? line.starts_with(drawn.substr(0, drawn.size() - rest.size()))
           : line == drawn;
}

/// Whether the output contains all drawn lines. Parts between empty lines may lie apart
/// in the output.
bool has_lines(const std::string& output, const std::vector<std::string>& drawn) {
  const auto all = lines_of(output);
  for (auto begin = drawn.begin(); begin != drawn.end();) {
    const auto end = std::find(begin, drawn.end(), "");
    const auto found =
      std::search(all.begin(), all.end(), begin, end,
                  [](const auto& line, const auto& one) { return is_line(one, line); });
    if (found == all.end())
      return false;
    begin = end == drawn.end() ? end : end + 1;
  }
  return true;
}

// -- tables

/// The results of a simulation, whether the command draws a picture or not.
json results_of(const std::string& command) {
  const auto text =
    printed(command.substr(0, command.find(" --print")) + " --quiet --json -");
  INFO(command << "\n" << text);
  auto results = json::parse(text, nullptr, false);
  REQUIRE_FALSE(results.is_discarded());
  return results;
}

/// All results that a section's simulations have measured.
std::vector<json> runs_of(const documents::section& part) {
  std::vector<json> result;
  const auto add = [&](const std::string& command) {
    if (!is_simulation(command))
      return;
    const auto results = results_of(command);
    for (const auto& run : results["runs"])
      result.push_back(run);
  };
  for (const auto& one : part.commands)
    add(one.text);
  for (const auto& one : part.pictures)
    add(one.command);
  return result;
}

std::vector<double> numbers_in(const std::string& text) {
  static const std::regex number{"[0-9][0-9,]*(\\.[0-9]+)?"};
  std::vector<double> result;
  for (std::sregex_iterator i{text.begin(), text.end(), number}, end; i != end; ++i)
    result.push_back(std::stod(std::regex_replace(i->str(), std::regex{","}, "")));
  return result;
}

/// Whether a cell's last number is a value, rounded to the number's digits. Cells have
/// formulas first: "(M+S-1)(F+B) = 33".
bool is_rounded(const std::string& cell, double value) {
  static const std::regex last{"([0-9]+)(\\.([0-9]+))?[^0-9]*$"};
  std::smatch found;
  if (!std::regex_search(cell, found, last))
    return false;
  const auto digits = static_cast<double>(found[3].length());
  return std::abs(std::stod(found[1].str() + found[2].str()) - value)
         <= 0.5 * std::pow(10, -digits) + 1e-9;
}

/// Whether a cell agrees with values. "4, 3, 2, 1" lists all values; a single number,
/// also "11/2", is the largest value.
bool is_list(const std::string& cell, const std::vector<double>& values) {
  const auto plain = cell.substr(0, cell.find_first_of("/(o"));
  std::vector<double> said;
  std::istringstream parts{plain};
  for (std::string part; std::getline(parts, part, ',');)
    said.push_back(std::stod(part));
  return said.size() == 1 ? said[0] == std::ranges::max(values) : said == values;
}

/// Whether a cell agrees with a run, by the name of the cell's column. Absent if the
/// column has no number of a run.
std::optional<bool> agrees(const std::string& head, const std::string& cell,
                           const json& run) {
  const auto is = [&](const char* word) {
    return head.find(word) != std::string::npos;
  };
  const auto list = [&](const json& of) {
    return is_list(cell, of.get<std::vector<double>>());
  };
  if (cell.empty() || numbers_in(cell).empty())
    return {};
  const double makespan = 1e3 * run["makespan"].get<double>();
  const auto idle = run["idle"].get<std::vector<double>>();
  if (is("makespan"))
    return is_rounded(cell, makespan);
  if (is("idle")) {
    const auto of = cell.find(" of ");
    return std::ranges::all_of(
             idle,
             [&](double one) { return is_rounded(cell.substr(0, of), 1e3 * one); })
           && (of == std::string::npos || is_rounded(cell, makespan));
  }
  if (is("bubble"))
    return is_rounded(cell, 100 * run["bubble"].get<double>());
  if (is("activations"))
    return list(run["peak_activations"]);
  if (is("versions"))
    return list(run["weight_versions"]);
  if (is("staleness"))
    return list(run["staleness"]["max"]);
  return {};
}

/// The names of schedules in a row's first cell, in backticks.
std::vector<std::string> names_in(const std::string& cell) {
  static const std::regex quoted{"`([^`]+)`"};
  std::vector<std::string> result;
  for (std::sregex_iterator i{cell.begin(), cell.end(), quoted}, end; i != end; ++i)
    result.push_back((*i)[1]);
  return result;
}

/// Whether a row has measured numbers, and not a formula.
bool is_measured(const documents::table& of, const documents::row& row) {
  const auto says = [](const std::string& cell, const char* word) {
    return cell.find(word) != std::string::npos;
  };
  if (says(row[0], "formula") || says(row[0], "published"))
    return false;
  return says(row[0], "measured") || says(of.head[0], "measured")
         || (row[0].starts_with('`') && std::ranges::count(of.head, "bubble") == 1
             && std::ranges::count(of.head, "placement") == 0);
}

/// Returns one schedule's part of a row of several schedules: a cell has one value of
/// each, separated by commas.
documents::row part_of(const documents::row& row, std::size_t index,
                       std::size_t count) {
  documents::row result;
  for (const auto& cell : row) {
    documents::row parts;
    std::istringstream from{cell};
    for (std::string part; std::getline(from, part, ',');)
      parts.push_back(documents::stripped(part));
    result.push_back(parts.size() == count ? parts[index] : cell);
  }
  return result;
}

int cells_that_agree(const documents::row& head, const documents::row& row,
                     const json& run) {
  int count = 0;
  for (std::size_t c = 1; c < std::min(head.size(), row.size()); ++c) {
    const auto found = agrees(head[c], row[c], run);
    if (found == false)
      return 0;
    count += found == true;
  }
  return count;
}

/// Whether a row's name is the name of a run: the schedule with all parameters,
/// "chimera:pairs=2", or the value of --recompute. An empty name matches every run.
bool is_named(const json& run, const std::string& name) {
  const std::string schedule = run["schedule"];
  std::string text = schedule;
  for (const auto& [key, value] : run["parameters"].items())
    text += (text == schedule ? ":" : ",") + key + "=" + value.get<std::string>();
  const std::string recompute = run["recompute"];
  return name.empty() || name == text || name == recompute
         || name == "--recompute " + recompute;
}

/// Number of cells that agree with one of the runs; 0 if some cell differs in every
/// run.
int measured_cells(const documents::row& head, const documents::row& row,
                   const std::string& name, const std::vector<json>& runs) {
  int most = 0;
  for (const auto& run : runs)
    if (is_named(run, name))
      most = std::max(most, cells_that_agree(head, row, run));
  return most;
}

} // namespace

TEST_CASE("pictures in the documents are what their commands print", "[documents]") {
  int pictures = 0;
  for (const auto& part : all_sections())
    for (const auto& one : part.pictures) {
      auto lines = one.lines;
      std::erase(lines, "");
      const bool repeats = one.command.find("./troupe simulate ") != std::string::npos
                           || one.command.starts_with("./troupe collectives ");
      if (!repeats || lines.empty())
        continue;
      auto output = printed(one.command);
      INFO(part.name << ": " << one.command << "\n" << output);
      ++pictures;
      CHECK((has_lines(output, one.lines)));
    }
  CHECK(pictures > 15);
}

TEST_CASE("measured rows of the documents' tables are what their commands give",
          "[documents]") {
  int rows = 0;
  for (const auto& part : all_sections()) {
    std::optional<std::vector<json>> runs;
    for (const auto& table : part.tables)
      for (const auto& row : table.rows) {
        if (!is_measured(table, row))
          continue;
        if (!runs)
          runs = runs_of(part);
        if (runs->empty())
          continue; // a run in real time
        auto names = names_in(row[0]);
        if (names.empty())
          names.emplace_back();
        for (std::size_t i = 0; i < names.size(); ++i) {
          INFO(part.name << ": " << row[0] << ", " << names[i]);
          ++rows;
          CHECK(
            measured_cells(table.head, part_of(row, i, names.size()), names[i], *runs)
            > 0);
        }
      }
  }
  CHECK(rows > 60);
}

TEST_CASE("tables of compare in the documents have the memory that compare measures",
          "[documents]") {
  // schedule, samples/s, tokens/s, timing, makespan, idle, bubble, other programs; then
  // numbers that are equal on all machines: activations, MiB, versions, the largest
  // staleness.
  const auto cells_of = [](const std::string& text) {
    std::map<std::string, documents::row> result;
    for (const auto& line : lines_of(text)) {
      std::istringstream words{line};
      const documents::row cells{std::istream_iterator<std::string>{words}, {}};
      if (cells.size() == 16 && cells[3] == "modelled")
        result[cells[0]] = {cells.begin() + 8, cells.begin() + 12};
    }
    return result;
  };
  const auto expected =
    cells_of(printed("./troupe compare --threads 2 --steps 4 --evaluate-samples 8"));
  int rows = 0;
  for (const auto* document : {"README.md", "docs/learning.md"})
    for (const auto& [name, cells] : cells_of(content_of(root / document))) {
      INFO(document << ": " << name);
      REQUIRE(expected.contains(name));
      ++rows;
      const auto& measured = expected.at(name);
      CHECK(
        std::stod(cells[1])
        == Catch::Approx(std::stod(measured[1])).epsilon(0.05)); // timing changes it
      if (name != "ampnet")
        CHECK(documents::row{cells[0], cells[2], cells[3]}
              == documents::row{measured[0], measured[2], measured[3]});
    }
  CHECK(rows == 6 + 11);
}

TEST_CASE("times and bubbles said before a command are what it prints", "[documents]") {
  static const std::regex said{"([0-9]+(\\.[0-9]+)?)( ms|%)"};
  int numbers = 0;
  for (const auto& part : all_sections())
    for (const auto& one : part.commands) {
      if (!is_simulation(one.text))
        continue;
      const auto results = results_of(one.text);
      for (std::sregex_iterator i{one.paragraph.begin(), one.paragraph.end(), said},
           end;
           i != end; ++i) {
        const bool is_time = (*i)[3] == " ms";
        INFO(part.name << ": " << i->str() << " before " << one.text);
        if (one.text.find("=" + (*i)[1].str()) != std::string::npos)
          continue; // an option
        ++numbers;
        CHECK(std::ranges::any_of(results["runs"], [&](const json& run) {
          return is_rounded((*i)[1], is_time ? 1e3 * run["makespan"].get<double>()
                                             : 100 * run["bubble"].get<double>());
        }));
      }
    }
  CHECK(numbers > 8);
}

} // namespace troupe::documents_test
