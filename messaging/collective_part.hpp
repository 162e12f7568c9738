// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "messaging/chunks.hpp"
#include "messaging/collective_order.hpp"

#include <cstdint>

namespace troupe {

/// One rank's part in a collective. All ranks have the same order, instance, ranks and
/// root, and chunks of the sizes that others expect of them.
struct collective_part {
  collective_order order;
  int rank;
  int ranks;
  int root = 0;
  chunks source;    ///< How the array it sends from is cut.
  chunks target;    ///< How the one it receives into is; the same if in place.
  int instance = 0; ///< Tells messages of different collectives apart.
};

/// A part of a collective over arrays of `values`, cut evenly.
collective_part even_part(const collective_order& order, int rank, int ranks,
                          std::int64_t values, int root = 0, int instance = 0);

/// Whose arrays a part reads and writes; without any, messages have sizes only.
struct collective_memory {
  float* source = nullptr;
  float* target = nullptr; ///< The source, if the order is in place.
  pool* payloads = nullptr;
};

/// What a rank does at a step: as the order says, counted from the root that the part
/// has.
collective_step step_of(const collective_part& part, int index);

// Whether something moves then: empty ranges do not.
bool sends(const collective_part& part, const collective_step& step);
bool receives(const collective_part& part, const collective_step& step);

/// The buffers that a part never needs more or larger of, whenever its messages arrive;
/// all are back when all ranks are done.
struct payload_bound {
  int buffers = 0;
  std::int64_t values = 0; ///< Of each buffer.
};
payload_bound payloads_of(const collective_part& part);

} // namespace troupe
