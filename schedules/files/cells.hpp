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

/// Reads "2F5", "(0F7;7B3)OVERLAP_F_B" or "2SEND_F5". On error says what can stand in a
/// cell.
tl::expected<file_cell, std::string> read_cell(const std::string& text);

} // namespace troupe
