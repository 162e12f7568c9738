// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/chunks.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// What a collective is for. The root is a rank of the caller's choice. Chunks are cut
/// by the caller too, one a rank unless the order says otherwise.
enum class collective_operation : std::uint8_t {
  send,           ///< The root's array, to the rank after it.
  scatter,        ///< Chunk r of the root's array, to rank r.
  gather,         ///< Chunk r of rank r's array, to the root.
  broadcast,      ///< The root's array, to all.
  reduce,         ///< The sum of all arrays, to the root.
  all_reduce,     ///< The sum of all arrays, to all.
  all_gather,     ///< Chunk r of rank r's array for each r, to all.
  reduce_scatter, ///< Chunk r of the sum, to rank r.
  all_to_all,     ///< Chunk r of each rank's array, to rank r.
};

/// What becomes of what a step receives.
enum class reception : std::uint8_t {
  hold, ///< It is waited for, and kept for a later step of its round and sender.
  copy, ///< It takes the place of what the array has there.
  add,  ///< It is added to what the array has there.
};

/// The rank a step does not need.
inline constexpr int nobody = -1;

/// One step of one rank: it sends, then waits for what it receives. One without either
/// is passed over.
struct collective_step {
  int round = 0; ///< Of both messages; they are found by it and by their sender.
  int to = nobody;
  chunk_range sent = {};
  int from = nobody; ///< May be the rank itself, if a step sends to it.
  chunk_range received = {};
  reception use = reception::copy;
};

/// What an order takes by the book, for arrays of n bytes that all its chunks divide
/// evenly. By what ranks send and receive; a message of m bytes takes latency + m /
/// bandwidth.
struct collective_cost {
  double rounds;
  double messages;
  double bytes;        ///< All that are sent.
  double peak_bytes;   ///< The most that a rank sends in a round.
  double serial_bytes; ///< That are sent one after another: the sum of rounds' largest.
  /// Messages of ranks that are rounds ahead, at most: a receiving port may take them
  /// before the one that its rank waits for. 0 where ranks are a power of two.
  double ahead_bytes = 0;
  double summed_bytes = 0; ///< That a rank adds, one after another: of the slowest.

  /// The model of alpha (latency), beta (1 / bandwidth) and gamma (1 / sum_rate) of
  /// Thakur, Rabenseifner and Gropp, 2005. A rate of 0: such bytes take no time.
  ///
  /// No run takes longer, and where ranks are a power of two none is faster. Only an
  /// all_reduce by halving over other numbers of ranks may take longer with sums: pairs
  /// are ahead by sums too then, and more of their messages come early.
  double seconds(double latency, double bytes_per_second, double sum_rate = 0) const {
    const auto at = [](double count, double rate) {
      return rate > 0 ? count / rate : 0;
    };
    return rounds * latency + at(serial_bytes + ahead_bytes, bytes_per_second)
           + at(summed_bytes, sum_rate);
  }
};

/// How a collective goes, as data: a list of steps a rank, generated one by one. Rank 0
/// is the root; who runs an order counts ranks and chunks from its own root on.
struct collective_order {
  collective_operation what;
  std::string_view name;
  std::string_view idea; ///< With its source.

  int (*chunks)(int ranks); ///< That the array is cut into.
  int (*steps)(int ranks);  ///< Of each rank.
  collective_step (*step)(int rank, int ranks, int index);

  collective_cost (*cost)(int ranks, double bytes);
  std::string_view growth; ///< Of time, of all bytes and of the peak: n bytes, K ranks.

  /// False: what is received goes to a second array, which may be cut elsewhere.
  bool in_place = true;
};

} // namespace troupe
