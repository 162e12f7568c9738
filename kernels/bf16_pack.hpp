#pragma once

#include <cstdint>

namespace troupe {

/// The values of a tile before they are packed: `lines` rows of a (columns of b), and
/// `depth` places of each. All others of the tile are 0.
struct tile_source {
  const float* from;
  std::int64_t stride; ///< From a line to the next; not by depth, from place to place.
  int lines;
  int depth;
  bool by_depth; ///< Places of a line stand side by side in memory; else lines do.

  float at(int line, int place) const {
    if (line >= lines || place >= depth)
      return 0;
    return by_depth ? from[line * stride + place] : from[place * stride + line];
  }
};

/// Rounds a tile to bf16, in the order of bf16_block.hpp: of a, or else of b.
template <bool OfA>
void pack_tile(const tile_source& s, std::uint16_t* to);

/// The same by any processor.
template <bool OfA>
void pack_tile_plainly(const tile_source& s, std::uint16_t* to);

} // namespace troupe
