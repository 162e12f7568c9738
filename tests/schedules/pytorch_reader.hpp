// SPDX-License-Identifier: BSD-3-Clause
// Reads a schedule's file as PyTorch's torch.distributed.pipelining does. So exported
// files are checked by another reader than the project's. (schedules.py of PyTorch
// 2.10: _PipelineScheduleRuntime._load_csv, _Action.from_str, _validate_schedule.)
#pragma once

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace pytorch {

struct action {
  int stage;
  std::string op;
  int microbatch;

  bool operator==(const action&) const = default;
};

/// A file as PyTorch reads one: one line for each rank.
struct loaded {
  std::vector<std::vector<action>> ranks;
  std::map<int, int> rank_of_stage;
};

/// One cell without parentheses; PyTorch's expression need not match to the end.
inline action action_of(const std::string& text) {
  static const std::regex form{
    "(\\d+)(F|I|B|W|UNSHARD|RESHARD|REDUCE_GRAD|SEND_F|RECV_F|SEND_B|RECV_B)(\\d*)"};
  std::smatch parts;
  if (!std::regex_search(text, parts, form, std::regex_constants::match_continuous))
    throw std::runtime_error{"invalid action: " + text};
  return {std::stoi(parts[1]), parts[2],
          parts[3].length() > 0 ? std::stoi(parts[3]) : -1};
}

inline std::string stripped(std::string text) {
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

/// The actions of a cell: none, one, or both of an overlapped pair.
inline std::vector<action> actions_of(const std::string& cell) {
  const auto text = stripped(cell);
  if (text.empty())
    return {};
  const auto end = text.find(')');
  if (text.front() != '(' || end == std::string::npos)
    return {action_of(text)};
  if (text.substr(end + 1) != "OVERLAP_F_B")
    throw std::runtime_error{"invalid computation type: " + text.substr(end + 1)};
  std::vector<action> result;
  std::istringstream parts{text.substr(1, end - 1)};
  for (std::string part; std::getline(parts, part, ';');)
    result.push_back(action_of(stripped(part)));
  return result;
}

/// Each microbatch has F before B or I, and I before W, on the one rank of its stage.
inline void validate(loaded& file, int microbatches) {
  std::map<std::pair<int, std::string>, std::set<int>> seen;
  for (std::size_t rank = 0; rank < file.ranks.size(); ++rank)
    for (const auto& a : file.ranks[rank]) {
      const std::string before = a.op == "W" ? "I" : a.op == "F" ? "" : "F";
      if (!before.empty() && !seen[{a.stage, before}].contains(a.microbatch))
        throw std::runtime_error{a.op + " before " + before};
      seen[{a.stage, a.op}].insert(a.microbatch);
      const auto [host, is_new] =
        file.rank_of_stage.emplace(a.stage, static_cast<int>(rank));
      if (host->second != static_cast<int>(rank))
        throw std::runtime_error{"a stage on two ranks"};
    }
  for (const auto& [stage, rank] : file.rank_of_stage) {
    const auto count = [&, s = stage](const char* op) {
      return static_cast<int>(seen[{s, op}].size());
    };
    const bool whole = count("B") == microbatches,
               halves = count("I") == microbatches && count("W") == microbatches;
    if (count("F") != microbatches
        || (!whole && !halves && count("B") + count("I") != microbatches))
      throw std::runtime_error{"a stage lacks a microbatch"};
  }
}

/// \throws std::runtime_error where PyTorch would throw
inline loaded load_csv(const std::string& text, int ranks, int microbatches) {
  loaded result;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    auto& row = result.ranks.emplace_back();
    std::istringstream cells{line};
    for (std::string cell; std::getline(cells, cell, ',');)
      for (const auto& a : actions_of(cell))
        row.push_back(a);
  }
  if (static_cast<int>(result.ranks.size()) != ranks)
    throw std::runtime_error{"not a line a rank"};
  validate(result, microbatches);
  return result;
}

} // namespace pytorch
