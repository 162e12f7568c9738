// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/files/transfers.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace troupe {

namespace {

bool passes_on(cell_transfer kind) {
  return kind < cell_transfer::unshard;
}

/// Checks the transfers of one row, cell by cell.
class transfer_check {
public:
  /// \param sends whether any row sends or receives
  transfer_check(const std::vector<file_cell>& row, int rank,
                 const std::vector<int>& ranks, bool sends)
    : row_(row), rank_(rank), ranks_(ranks), sends_(sends) {
    for (const auto& cell : row)
      if (cell.moves == cell_transfer::unshard)
        shards_.insert(cell.stage);
  }

  std::string first_wrong() {
    for (const auto& cell : row_) {
      auto error = cell.moves ? judge(cell) : std::string{};
      for (const auto& a : cell.actions)
        if (error.empty())
          error = judge(a);
      if (!error.empty())
        return error;
    }
    if (!received_.empty())
      return "the input of " + name(*received_.begin()) + " is received and not used";
    if (!sends_)
      return {};
    for (const auto& k : ran_)
      if (goes_elsewhere(k) && !sent_.contains(k))
        return "the output of " + name(k) + " has no " + (k.first ? "SEND_F" : "SEND_B")
               + ", and another row reads it";
    return {};
  }

private:
  using key = std::pair<bool, std::pair<int, int>>; // forward, stage and microbatch

  static std::string name(const key& k) {
    return std::to_string(k.second.first) + (k.first ? "F" : "B")
           + std::to_string(k.second.second);
  }

  static std::string name_of_stage(int stage) {
    return "stage " + std::to_string(stage);
  }

  /// The text of a cell with a transfer: "3SEND_F0", "2UNSHARD".
  static std::string name_of_transfer(const file_cell& cell) {
    const auto text = std::to_string(cell.stage) + std::string{name_of(*cell.moves)};
    return passes_on(*cell.moves) ? text + std::to_string(cell.microbatch) : text;
  }

  std::string row_of(int stage) const {
    return std::to_string(ranks_[static_cast<std::size_t>(stage)]);
  }

  bool is_here(int stage) const {
    return stage >= 0 && stage < std::ssize(ranks_)
           && ranks_[static_cast<std::size_t>(stage)] == rank_;
  }

  bool is_elsewhere(int stage) const {
    return stage >= 0 && stage < std::ssize(ranks_) && !is_here(stage);
  }

  bool goes_elsewhere(const key& k) const {
    return is_elsewhere(k.second.first + (k.first ? 1 : -1));
  }

  std::string judge(const action& a) {
    if (shards_.contains(a.stage) && !whole_.contains(a.stage))
      return to_string(a, true) + " runs while its stage is sharded: write "
             + std::to_string(a.stage) + "UNSHARD before the action";
    if (adds_gradient(a.op) && reduced_.contains(a.stage))
      return to_string(a, true) + " adds a gradient after REDUCE_GRAD of its stage";
    const bool forward = a.op == op::forward;
    if (!forward && !goes_back(a.op))
      return {};
    const key k{forward, {a.stage, a.microbatch}};
    if (sends_ && is_elsewhere(forward ? a.stage - 1 : a.stage + 1)
        && received_.erase(k) == 0)
      return to_string(a, true) + " has no " + (forward ? "RECV_F" : "RECV_B")
             + " before it";
    ran_.insert(k);
    return {};
  }

  std::string judge(const file_cell& cell) {
    if (!is_here(cell.stage))
      return name_of_transfer(cell) + " is a transfer of " + name_of_stage(cell.stage)
             + ", whose actions are in "
             + (is_elsewhere(cell.stage)
                  ? "row " + row_of(cell.stage) + ": move the transfer to that row"
                  : "no row: leave the transfer out");
    const bool forward = cell.moves == cell_transfer::send_forward
                         || cell.moves == cell_transfer::receive_forward;
    const key k{forward, {cell.stage, cell.microbatch}};
    switch (*cell.moves) {
    case cell_transfer::receive_forward:
    case cell_transfer::receive_backward:
      if (ran_.contains(k) || !received_.insert(k).second)
        return "the input of " + name(k)
               + " is received twice, or after the action that uses the input";
      if (!is_elsewhere(forward ? cell.stage - 1 : cell.stage + 1))
        return "the input of " + name(k) + " comes from no other row";
      return {};
    case cell_transfer::send_forward:
    case cell_transfer::send_backward:
      if (!ran_.contains(k) || !sent_.insert(k).second)
        return "the output of " + name(k)
               + " is sent twice, or before the action that computes the output";
      if (!goes_elsewhere(k))
        return "the output of " + name(k) + " goes to no other row";
      return {};
    case cell_transfer::unshard:
      whole_.insert(cell.stage);
      return {};
    case cell_transfer::reshard:
      if (whole_.erase(cell.stage) == 0)
        return name_of_stage(cell.stage) + " has RESHARD without UNSHARD before";
      return {};
    case cell_transfer::reduce_grad:
      if (!reduced_.insert(cell.stage).second)
        return name_of_stage(cell.stage) + " has REDUCE_GRAD twice";
      return {};
    }
    return {};
  }

  const std::vector<file_cell>& row_;
  int rank_;
  const std::vector<int>& ranks_;
  bool sends_;
  std::set<int> shards_, whole_, reduced_; // stages
  std::set<key> received_, ran_, sent_;
};

} // namespace

std::string first_wrong_transfer(const std::vector<std::vector<file_cell>>& rows,
                                 const std::vector<int>& ranks) {
  const bool sends = std::ranges::any_of(rows, [](const auto& row) {
    return std::ranges::any_of(
      row, [](const file_cell& c) { return c.moves && passes_on(*c.moves); });
  });
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    if (auto error = transfer_check{rows[rank], static_cast<int>(rank), ranks, sends}
                       .first_wrong();
        !error.empty())
      return "row " + std::to_string(rank) + ": " + error;
  return {};
}

} // namespace troupe
