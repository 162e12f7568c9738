// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tests/experiments/run_program.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

/// Options of trainings with checkpoints, as a user types the options.
namespace checkpointed {

inline const std::string tiny_model =
  " --d-model 8 --heads 2 --seq 4 --vocab 7 --layers 4 --batch 9 "
  "--microbatches 4 --evaluate-samples 4 --quiet --json r.json ";
inline const std::string saving = " --checkpoint c --checkpoint-every 2 --keep 9 ";

/// Replaces some bytes of a file by other bytes.
inline void flip(const std::filesystem::path& file, std::int64_t at) {
  std::fstream open{file, std::ios::binary | std::ios::in | std::ios::out};
  open.seekg(at);
  const auto old = static_cast<char>(open.get());
  open.seekp(at);
  open.put(static_cast<char>(old ^ 1));
}

} // namespace checkpointed
