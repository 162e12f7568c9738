// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/files/cells.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr std::array<std::pair<std::string_view, cell_transfer>, 7> transfers{{
  {"SEND_F", cell_transfer::send_forward},
  {"RECV_F", cell_transfer::receive_forward},
  {"SEND_B", cell_transfer::send_backward},
  {"RECV_B", cell_transfer::receive_backward},
  {"UNSHARD", cell_transfer::unshard},
  {"RESHARD", cell_transfer::reshard},
  {"REDUCE_GRAD", cell_transfer::reduce_grad},
}};

using named_op = std::pair<std::string_view, op>;

constexpr std::array<named_op, 5> ops{{
  {"F", op::forward},
  {"B", op::backward},
  {"I", op::input_gradient},
  {"W", op::weight_gradient},
  {"U", op::update},
}};

constexpr std::array<named_op, 5> ops_in_halves{{
  {"F", op::forward},
  {"BW", op::backward},
  {"B", op::input_gradient},
  {"W", op::weight_gradient},
  {"U", op::update},
}};

/// The parts of a cell: "2F5" is 2, "F" and 5; -1 where there is no number.
struct parts {
  int stage = -1;
  std::string_view name;
  int microbatch = -1;
};

std::optional<parts> parts_of(std::string_view text) {
  constexpr int most = 1 << 20;
  parts result;
  // Removes a number from the front of a text. False if there is none, or if the number
  // is too large.
  const auto number = [&](std::string_view& from, int& to) {
    if (from.empty() || from.front() < '0' || from.front() > '9')
      return false;
    const auto [end, failure] = std::from_chars(from.begin(), from.end(), to);
    from.remove_prefix(static_cast<std::size_t>(end - from.begin()));
    return failure == std::errc{} && to <= most;
  };
  if (!number(text, result.stage))
    return {};
  const auto digits =
    std::ranges::find_if(text, [](char c) { return c >= '0' && c <= '9'; });
  result.name = text.substr(0, static_cast<std::size_t>(digits - text.begin()));
  text.remove_prefix(result.name.size());
  if (result.name.empty() || (!text.empty() && !number(text, result.microbatch))
      || !text.empty())
    return {};
  return result;
}

std::optional<action> action_of(std::string_view text, cell_notation notation) {
  const auto p = parts_of(text);
  if (!p || p->microbatch < 0)
    return {};
  const auto& letters = notation == cell_notation::whole ? ops : ops_in_halves;
  const auto entry = std::ranges::find(letters, p->name, &named_op::first);
  if (entry == letters.end())
    return {};
  return action{entry->second, 0, p->stage, p->microbatch};
}

/// The texts of the two actions in "(0F7;7B3)OVERLAP_F_B"; absent for any other cell.
std::optional<std::pair<std::string_view, std::string_view>>
sides_of(std::string_view text) {
  constexpr std::string_view end = ")OVERLAP_F_B";
  const auto between = text.find(';');
  if (!text.starts_with('(') || !text.ends_with(end)
      || between == std::string_view::npos)
    return {};
  return std::pair{text.substr(1, between - 1),
                   text.substr(between + 1, text.size() - end.size() - between - 1)};
}

/// Reads a pair. The forward comes first in the result, in either order of the text.
std::optional<file_cell> pair_of(std::string_view text, cell_notation notation) {
  const auto sides = sides_of(text);
  if (!sides)
    return {};
  auto first = action_of(sides->first, notation),
       second = action_of(sides->second, notation);
  if (!first || !second)
    return {};
  if (first->op != op::forward)
    std::swap(first, second);
  if (first->op != op::forward || !goes_back(second->op))
    return {};
  first->pair = in_pair::first;
  second->pair = in_pair::second;
  return file_cell{.actions = {*first, *second}};
}

/// Collects the letters of backwards in the cells of a file.
class backward_letters {
public:
  void add(std::string_view cell) {
    if (const auto sides = sides_of(cell)) {
      add(sides->first);
      add(sides->second);
    } else if (const auto p = parts_of(cell)) {
      const std::pair key{p->stage, p->microbatch};
      if (p->name == "B")
        b_.insert(key);
      else if (p->name == "W")
        w_.insert(key);
      else if (p->name == "BW" && first_bw_.empty())
        first_bw_ = cell;
      else if (p->name == "I" && first_i_.empty())
        first_i_ = cell;
    }
  }

  const std::string& first_bw() const { return first_bw_; }
  const std::string& first_i() const { return first_i_; }

  /// Whether one stage has both B and W of one microbatch.
  bool b_beside_w() const {
    return std::ranges::any_of(w_,
                               [this](const auto& key) { return b_.contains(key); });
  }

private:
  std::set<std::pair<int, int>> b_, w_; // stage and microbatch
  std::string first_bw_, first_i_;
};

/// The part of a cell that an error message shows: the first 40 characters, without
/// control characters.
std::string shown(const std::string& text) {
  constexpr std::size_t most = 40;
  auto result = text.substr(0, most);
  std::ranges::replace_if(
    result, [](unsigned char c) { return c < ' ' || c >= 0x7f; }, '?');
  return text.size() > most ? result + ".." : result;
}

} // namespace

std::string_view name_of(cell_transfer kind) {
  return std::ranges::find(transfers, kind,
                           &std::pair<std::string_view, cell_transfer>::second)
    ->first;
}

tl::expected<cell_notation, std::string>
notation_of(const std::vector<std::string>& cells) {
  backward_letters letters;
  for (const auto& cell : cells)
    letters.add(cell);
  const auto &bw = letters.first_bw(), &i = letters.first_i();
  if (!bw.empty() && !i.empty())
    return tl::unexpected{"'" + shown(bw) + "' is in the notation of PyTorch 2.5, but '"
                          + shown(i)
                          + "' in the notation of later versions: write B for a whole "
                            "backward, I for input and W for weight gradients"};
  return !bw.empty() || (i.empty() && letters.b_beside_w()) ? cell_notation::halves
                                                            : cell_notation::whole;
}

tl::expected<file_cell, std::string> read_cell(const std::string& text,
                                               cell_notation notation) {
  if (const auto single_action = action_of(text, notation))
    return file_cell{.actions = {*single_action}};
  if (auto pair_cell = pair_of(text, notation))
    return std::move(*pair_cell);
  if (const auto p = parts_of(text)) {
    const auto entry = std::ranges::find(
      transfers, p->name, &std::pair<std::string_view, cell_transfer>::first);
    if (entry != transfers.end()) {
      const bool of_stage = entry->second >= cell_transfer::unshard;
      if (of_stage == (p->microbatch < 0))
        return file_cell{.actions = {},
                         .moves = entry->second,
                         .stage = p->stage,
                         .microbatch = p->microbatch};
    }
  }
  return tl::unexpected{
    "'" + shown(text)
    + "' is no action: write 2F5 for the forward of microbatch 5 at stage 2, or F, B, "
      "I, W, U or a transfer of PyTorch like 2SEND_F5"};
}

} // namespace troupe
