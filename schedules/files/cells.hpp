// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Cells of schedule files in PyTorch's notation, read into actions and transfers.

namespace troupe {

/// Operations of PyTorch's lowered form that move or shard data. Such operations
/// compute nothing.
enum class cell_transfer : std::uint8_t {
  send_forward,
  receive_forward,
  send_backward,
  receive_backward,
  unshard,
  reshard,
  reduce_grad,
};

/// A cell of a schedule file: one action, a pair of actions, or a transfer.
struct file_cell {
  std::vector<action> actions; ///< Actions of direction 0; none for a transfer.
  std::optional<cell_transfer> moves = {}; ///< Absent if the cell has actions.
  int stage = 0; ///< Stage of a transfer; 0 if the cell has actions.
  /// Microbatch of a transfer; -1 if the transfer is of the whole stage, or if the cell
  /// has actions.
  int microbatch = -1;
};

/// The letters that a file uses for backwards. `whole` is the notation of this project,
/// and of PyTorch from 2.6 on; `halves` is the notation of PyTorch 2.5.
///
///   notation   whole backward   input gradient   weight gradient
///   whole      B                I                W
///   halves     BW               B                W
enum class cell_notation : std::uint8_t { whole, halves };

/// Returns the notation of a file's cells. The notation is `halves` if a cell is BW. If
/// no cell is I, the notation is also `halves` where one stage has both B and W of one
/// microbatch. On error, one sentence shows a cell with BW and a cell with I, which
/// exclude each other.
tl::expected<cell_notation, std::string>
notation_of(const std::vector<std::string>& cells);

/// The name of a transfer in a cell: "SEND_F".
std::string_view name_of(cell_transfer kind);

/// Reads a cell, such as "2F5", "(0F7;7B3)OVERLAP_F_B" or "2SEND_F5". On error, one
/// sentence says which cells are allowed.
tl::expected<file_cell, std::string>
read_cell(const std::string& text, cell_notation notation = cell_notation::whole);

} // namespace troupe
