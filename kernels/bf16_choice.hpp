// SPDX-License-Identifier: BSD-3-Clause
// Chooses the path (bf16_block.hpp) that computes products of bf16 where TROUPE_BF16
// names none.
//
// Where one path is never slower than the others, the processor's instructions decide.
// With AMX, the path is `amx`. Without instructions for bf16 the path is `widen`, the
// fp32 kernel, as `plain` needs more instructions for the same products. With AVX-512's
// instructions for bf16 and without AMX, either of `dot` and `widen` may be faster. On
// Intel's processors VDPBF16PS has the throughput of a multiply-add, on AMD's twice
// that throughput. With such instructions and without AMX, both paths are measured, and
// `dot` is chosen only if more than 1.2 times as fast as `widen`. A path decides the
// bits of a run, so noise must not choose the path. The first choice by measurement is
// stored in the user's cache. The choice holds for later runs on a processor of the
// same name, of the same version of troupe and with the same width of vectors. A run
// that cannot store the choice leaves the next run to measure.
#pragma once

#include "kernels/bf16_block.hpp"

#include <tl/expected.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The path in use: the value of the environment variable TROUPE_BF16, or else the
/// choice for this machine. The first call makes the choice and may measure; later
/// calls return the same result. The error is a sentence that names the allowed values
/// of the variable. Thread: any.
tl::expected<bf16_path, std::string> chosen_bf16_path();

/// The path that TROUPE_BF16, the processor's instructions or a stored choice decide.
/// Absent if none of these decides, also after a measurement that could not be stored.
/// Measures and writes nothing. Errors are as for chosen_bf16_path().
tl::expected<std::optional<bf16_path>, std::string> known_bf16_path();

/// Returns one sentence for the user if the path of chosen_bf16_path() was measured and
/// could not be stored; else an empty text. Calls chosen_bf16_path(), so the first call
/// may measure.
std::string notice_of_bf16_path();

struct bf16_choice {
  bf16_path path = bf16_path::widen;
  /// One sentence for the user; empty if the choice is stored, or needs no measurement.
  std::string notice;
};

/// The machine for which a path is chosen.
struct bf16_machine {
  std::vector<bf16_path> offered; ///< The paths of the processor.
  std::string name; ///< Processor, version of troupe and width of vectors, in one line.
  std::optional<std::filesystem::path>
    cache; ///< The folder of stored choices; absent if choices are not stored.
  std::function<double(bf16_path)>
    seconds; ///< Computes one product by a path, and returns the elapsed seconds.
};

/// Returns the path that the processor's instructions or a stored choice decide; absent
/// if the machine must be measured.
std::optional<bf16_path> known_bf16_path(const bf16_machine& machine);

/// Chooses a path, by measurement if need be, and stores a measured choice. Never
/// throws for a file that cannot be read or written. A choice that cannot be stored is
/// made again by the next run, and the notice says so. If several processes measure at
/// the same time, all return the choice that was stored first.
bf16_choice choose_bf16_path(const bf16_machine& machine);

/// The file that stores the choice of a machine.
/// \pre the machine has a cache
std::filesystem::path file_of_choice(const bf16_machine& machine);

/// Returns this machine. The cache is $XDG_CACHE_HOME/troupe or ~/.cache/troupe; absent
/// if neither XDG_CACHE_HOME nor HOME is an absolute path.
bf16_machine this_bf16_machine();

} // namespace troupe
