// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/chunks.hpp"
#include "messaging/codecs/codec.hpp"
#include "messaging/collective_order.hpp"

#include <cstdint>

// One rank's part in a collective: order and ranks, arrays, and buffers for messages.

namespace troupe {

/// One rank's part in a collective. All ranks have the same order, instance, ranks and
/// root. The sizes of chunks agree between sender and receiver.
struct collective_part {
  collective_order order;
  int rank;
  int ranks;
  int root = 0;
  chunks source; ///< Chunks of the array that the rank sends from.
  /// Chunks of the array that the rank receives into; equal to `source` if the order is
  /// in place.
  chunks target;
  int instance = 0; ///< Number of the collective; all ranks use the same number.
  const codec_entry* coding = &fp32_codec(); ///< Encoding of messages.

  /// Values of 4 bytes in the buffer of a message.
  std::int64_t payload_values(std::int64_t values) const {
    return coding->bytes(values) / std::int64_t{sizeof(float)};
  }
};

/// Returns a part of a collective whose source has `values` values, cut evenly into
/// chunks. If the order is not in place, the target has `ranks` times as many values as
/// chunk `rank` of the source, also cut evenly.
collective_part even_part(const collective_order& order, int rank, int ranks,
                          std::int64_t values, int root = 0, int instance = 0);

/// The arrays that a part reads and writes. If `payloads` is null, nothing is computed,
/// and messages carry sizes only. The caller owns the arrays and the pool.
struct collective_memory {
  float* source = nullptr;
  float* target = nullptr; ///< Equals the source if the order is in place.
  pool* payloads = nullptr;
  /// Made by the part's `coding`; null: values are sent as fp32. Outlives the
  /// collective.
  codec* coder = nullptr;
};

/// Step `index` (from 0) of the part's rank: the order's step, with ranks and chunks
/// shifted from root 0 to the part's root.
collective_step step_of(const collective_part& part, int index);

/// True if the step sends at least one value; an empty range is not sent.
bool sends(const collective_part& part, const collective_step& step);
/// True if the step receives at least one value.
bool receives(const collective_part& part, const collective_step& step);

/// The number of buffers that a part needs at most at the same time, and the size of
/// each buffer.
struct payload_bound {
  int buffers = 0;
  std::int64_t values = 0; ///< Size of each buffer, in values of 4 bytes.
};
/// Returns the bound for the copies in a part's messages, for any order of arrival. All
/// buffers are free again when all ranks are done.
payload_bound payloads_of(const collective_part& part);

} // namespace troupe
