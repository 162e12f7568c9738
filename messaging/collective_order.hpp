// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/chunks.hpp"

#include <cstdint>
#include <string_view>

// A collective algorithm as data: operation, steps of each rank, and cost.

namespace troupe {

/// The operation of a collective. The caller chooses the rank that is the root. The
/// caller also cuts the chunks, one a rank unless the order says otherwise.
enum class collective_operation : std::uint8_t {
  send,           ///< The root's array, to the rank after the root.
  scatter,        ///< Chunk r of the root's array, to rank r.
  gather,         ///< Chunk r of rank r's array, to the root.
  broadcast,      ///< The root's array, to all ranks.
  reduce,         ///< The sum of all arrays, to the root.
  all_reduce,     ///< The sum of all arrays, to all ranks.
  all_gather,     ///< Chunk r of rank r's array for each r, to all ranks.
  reduce_scatter, ///< Chunk r of the sum, to rank r.
  all_to_all,     ///< Chunk r of each rank's array, to rank r.
};

/// The use of the values that a step receives.
enum class reception : std::uint8_t {
  hold, ///< Wait for the message, and keep it for a later step.
  copy, ///< Replace the array's values in the received range.
  add,  ///< Add to the array's values in the received range.
};

/// In place of the sender or the receiver that a step does not have.
inline constexpr int nobody = -1;

/// One step of one rank: send a message, then wait for the received one. A step without
/// a sender and a receiver does nothing.
struct collective_step {
  int round = 0; ///< Round of both messages; round and sender identify a message.
  int to = nobody;
  chunk_range sent = {};
  int from = nobody; ///< May be the rank itself.
  chunk_range received = {};
  reception use = reception::copy;
};

/// The theoretical cost of an order for arrays of n bytes that all chunks divide
/// evenly. The cost counts the messages that ranks send and receive. A message of m
/// bytes takes latency + m / bandwidth.
struct collective_cost {
  double rounds;
  double messages;
  double bytes;      ///< Bytes that all ranks send.
  double peak_bytes; ///< The most bytes that one rank sends in a round.
  /// Bytes that are sent one after another: the sum of each round's largest message.
  double serial_bytes;
  /// The most bytes that ranks send rounds ahead. A receiving port may take such
  /// messages before the message that the rank waits for. 0 where the number of ranks
  /// is a power of two.
  double ahead_bytes = 0;
  double summed_bytes = 0; ///< Bytes that the slowest rank adds, one after another.

  /// The time of the collective, in seconds, by the model of alpha (latency), beta (1 /
  /// bandwidth) and gamma (1 / sum_rate) of Thakur, Rabenseifner and Gropp, 2005. A
  /// rate of 0: such bytes take no time.
  ///
  /// No run takes longer than this time, and where the number of ranks is a power of
  /// two, no run is faster. One exception: an all_reduce by halving over other numbers
  /// of ranks may take longer with sums. Sums also put pairs of ranks ahead there, and
  /// more messages arrive early.
  double seconds(double latency, double bytes_per_second, double sum_rate = 0) const {
    const auto time_of = [](double count, double rate) {
      return rate > 0 ? count / rate : 0;
    };
    return rounds * latency + time_of(serial_bytes + ahead_bytes, bytes_per_second)
           + time_of(summed_bytes, sum_rate);
  }
};

/// A collective algorithm as data: one list of steps per rank, generated step by step.
/// Rank 0 is the root of an order. A run of the order counts ranks and chunks from the
/// root of the collective.
struct collective_order {
  collective_operation operation;
  std::string_view name;
  std::string_view idea; ///< The algorithm in a few words, with the source.

  int (*chunks)(int ranks); ///< The number of chunks in the array.
  int (*steps)(int ranks);  ///< The number of steps of each rank.
  collective_step (*step)(int rank, int ranks, int index);

  collective_cost (*cost)(int ranks, double bytes);
  /// The growth of the time, of all bytes and of the peak, with n bytes and K ranks.
  std::string_view growth;

  /// False: received values go to a second array, which may be cut in another way.
  bool in_place = true;
};

} // namespace troupe
