// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/action.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What a cell of PyTorch's lowered form does beside computing.
enum class transfer : std::uint8_t {
  send_forward,
  receive_forward,
  send_backward,
  receive_backward,
  unshard,
  reshard,
  reduce_grad,
};

/// A cell of a schedule file: one action, a pair of them, or a transfer.
struct file_cell {
  std::vector<action> actions; ///< Of direction 0.
  std::optional<transfer> moves = {};
  int stage = 0;       ///< Of a transfer.
  int microbatch = -1; ///< Likewise; -1: of the stage.
};

/// The letters of backwards in a file. `whole` is the notation of this project, and of
/// PyTorch from 2.6 on; `halves` is that of PyTorch 2.5.
///
///   notation   whole backward   input gradient   weight gradient
///   whole      B                I                W
///   halves     BW               B                W
enum class cell_notation : std::uint8_t { whole, halves };

/// The notation of a file's cells: `halves` if one of them is a BW, or if none is an I
/// and a stage has B and W of one microbatch. On error one sentence: cells of both are
/// among them.
tl::expected<cell_notation, std::string>
notation_of(const std::vector<std::string>& cells);

/// Reads "2F5", "(0F7;7B3)OVERLAP_F_B" or "2SEND_F5". On error says what can stand in a
/// cell.
tl::expected<file_cell, std::string>
read_cell(const std::string& text, cell_notation notation = cell_notation::whole);

} // namespace troupe
