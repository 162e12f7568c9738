// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

// A product of bf16 is computed in blocks of 32 x 32 sums. The operands of one block
// are packed in steps of 32 along the depth:
//
//   a   a step has two tiles of 16 rows; a row of a tile has 32 values of one row of a
//   b   a step has two tiles of 16 columns; row p of a tile has values 2p and 2p + 1 of
//       each column, side by side
//
// so a step of a, or of b, has 2 x 16 x 32 values.

inline constexpr int block_side = 32;
inline constexpr int step_depth = 32;
inline constexpr int step_values = block_side * step_depth;
inline constexpr int tile_side = block_side / 2;
inline constexpr int tile_values = tile_side * step_depth;

/// The instructions that compute products of bf16.
enum class bf16_path : std::uint8_t {
  /// Intel's AMX. For each step of the depth, the products at even and at odd indices
  /// are summed separately, in order. The total of the two sums is added to c.
  /// Subnormal numbers count as 0 everywhere ("Intel Architecture Instruction Set
  /// Extensions Programming Reference", TDPBF16PS).
  amx,

  /// AVX-512's VDPBF16PS. For each pair of indices, the product at the odd index is
  /// added to c, and then the product at the even index.
  dot,

  /// The fp32 kernel, for operands that packing widens (widened_gemm.hpp). This path
  /// uses no blocks.
  widen,

  /// Computes the same bits as `amx` on any processor, slowly.
  plain,
};

std::string to_text(bf16_path path);

/// The paths that this processor and system offer, in the order of the enumeration.
/// `widen` and `plain` exist everywhere.
std::vector<bf16_path> bf16_paths();

/// The order in which a path adds products: `tiles` for amx and plain, `pairs` for dot,
/// and `fp32` for widen. Paths with the same order compute the same bits.
enum class bf16_sums : std::uint8_t { tiles, pairs, fp32 };

bf16_sums sums_of(bf16_path path);

/// The values of TROUPE_BF16 with this order of sums, as text: "amx or plain" for
/// `tiles`. Includes paths that this processor does not offer.
std::string paths_of(bf16_sums sums);

/// A function that computes one block on this thread: c += a b, or c = a b if
/// `from_zero`. The block of c has 32 x 32 values, in rows `stride` values apart. Each
/// of a and b has `steps` packed steps, one after another.
/// \pre for the path `amx`, a tile_state of `amx` lives on this thread
using bf16_block = void (*)(std::int64_t steps, const std::uint16_t* a,
                            const std::uint16_t* b, bool from_zero, float* c,
                            std::int64_t stride);

/// Returns the function that computes a block with the instructions of a path.
/// \pre `path` is one of bf16_paths(), and not widen
/// \throws std::logic_error for widen
bf16_block block_of(bf16_path path);

/// Configures the AMX tiles of this thread for the blocks of a product, and releases
/// the tiles in the destructor. Does nothing for other paths than `amx`.
/// \pre no other object of this class lives on this thread
/// \pre constructor and destructor run on one thread
class tile_state {
public:
  explicit tile_state(bf16_path path);
  ~tile_state();
  tile_state(const tile_state&) = delete;
  tile_state& operator=(const tile_state&) = delete;

private:
  bool tiles_;
};

} // namespace troupe
