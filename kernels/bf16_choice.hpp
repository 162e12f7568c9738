// SPDX-License-Identifier: BSD-3-Clause
// Which path makes products of bf16 where TROUPE_BF16 names none.
//
// A rule by instructions decides wherever one path cannot lose: AMX where it exists;
// without instructions for bf16 the kernel of fp32, as `plain` makes the same products
// in more instructions. With AVX-512's instructions for bf16 and without AMX, either of
// `dot` and `widen` may be faster: VDPBF16PS has the throughput of a multiply-add on
// Intel's processors and twice that of AMD's. There both are measured, and `dot` is
// chosen only if it is faster by a clear margin. A path decides the bits of a run, so
// noise must not choose it: the first measurement of a machine is kept and holds for
// all later runs.
#pragma once

#include "kernels/bf16_block.hpp"

#include <tl/expected.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The path that is used: what the environment variable TROUPE_BF16 names, or else the
/// choice for this machine, made at the first call, which may measure. On error says
/// what the variable may name.
tl::expected<bf16_path, std::string> chosen_bf16_path();

/// The same where no measurement is needed; absent if the machine is to be measured
/// first. Measures and writes nothing. On error as chosen_bf16_path.
tl::expected<std::optional<bf16_path>, std::string> known_bf16_path();

/// A sentence for the user about that choice; usually empty.
std::string notice_of_bf16_path();

struct bf16_choice {
  bf16_path path = bf16_path::widen;
  std::string notice; ///< Empty if the choice is kept, or needs no measurement.
};

/// What a choice depends on.
struct bf16_machine {
  std::vector<bf16_path> offered; ///< The paths of its processor.
  std::string name; ///< Processor, version of troupe and of its code, in one line.
  std::optional<std::filesystem::path> cache; ///< The folder of kept choices.
  std::function<double(bf16_path)> seconds;   ///< Measures a product.
};

/// The path that instructions or a kept choice decide; absent without either.
std::optional<bf16_path> known_bf16_path(const bf16_machine& machine);

/// Never throws: a choice that cannot be kept is made again, and the notice says so.
bf16_choice choose_bf16_path(const bf16_machine& machine);

/// The file that keeps the choice of a machine.
std::filesystem::path file_of_choice(const bf16_machine& machine);

/// This machine. Its cache is $XDG_CACHE_HOME/troupe or ~/.cache/troupe.
bf16_machine this_bf16_machine();

} // namespace troupe
