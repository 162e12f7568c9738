// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/chunks.hpp"

#include <cstdint>
#include <string_view>

// A collective algorithm as data: operation, steps of each rank, and cost.

namespace troupe {

/// The operation of a collective. The caller chooses the rank that is the root. The
/// caller also cuts the array into chunks, one per rank unless collective_order::chunks
/// says otherwise.
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
  hold, ///< Wait for the message, and keep the message for a later step.
  copy, ///< Replace the array's values in the received range.
  add,  ///< Add to the array's values in the received range.
};

/// The value of `to` in a step without a receiver, and of `from` in a step without a
/// sender.
inline constexpr int nobody = -1;

/// One step of one rank: send a message, then wait for the received message. A step
/// with neither a receiver nor a sender does nothing.
struct collective_step {
  int round = 0;   ///< Round of both messages; round and sender identify a message.
  int to = nobody; ///< Receiving rank; may be the rank itself.
  chunk_range sent = {};
  int from = nobody; ///< Sending rank; may be the rank itself.
  chunk_range received = {};
  reception use = reception::copy;
};

/// The theoretical cost of an order for arrays of n bytes, where n is a multiple of the
/// number of chunks. Messages of a rank to itself do not count. A message of m bytes
/// takes latency + m / bandwidth.
struct collective_cost {
  double rounds;
  double messages;
  double bytes;      ///< Bytes that all ranks send.
  double peak_bytes; ///< The most bytes that one rank sends in a round.
  /// Bytes that are sent one after another: the sum over rounds of the round's largest
  /// message.
  double serial_bytes;
  /// Most bytes of later rounds that a rank receives early, from ranks that are ahead.
  /// The port may receive these bytes before the message of the next step. 0 except for
  /// an all_reduce by halving among ranks whose number is no power of two.
  double ahead_bytes = 0;
  double summed_bytes = 0; ///< Bytes that the slowest rank adds, one after another.

  /// The time of the collective, in seconds. The model is that of Thakur, Rabenseifner
  /// and Gropp, 2005, with alpha (latency), beta (1 / bandwidth) and gamma (1 /
  /// sum_rate). If bytes_per_second is 0, sent bytes take no time; if sum_rate is 0,
  /// sums take no time.
  ///
  /// No run takes longer than this time, with one exception. An all_reduce by halving
  /// may take longer if the number of ranks is no power of two and sums take time. Some
  /// pairs of ranks are then ahead, and more messages arrive early. Where the number of
  /// ranks is a power of two, no run is faster than this time.
  /// \param latency seconds from departure to arrival of a message's first byte
  /// \param bytes_per_second bandwidth of a port
  /// \param sum_rate bytes that a rank adds per second
  double seconds(double latency, double bytes_per_second, double sum_rate = 0) const {
    const auto time_of = [](double count, double rate) {
      return rate > 0 ? count / rate : 0;
    };
    return rounds * latency + time_of(serial_bytes + ahead_bytes, bytes_per_second)
           + time_of(summed_bytes, sum_rate);
  }
};

/// A collective algorithm as data: one list of steps per rank, generated step by step.
/// In the steps of an order, rank 0 is the root. For another root, step_of()
/// (collective_part.hpp) shifts ranks and chunks.
struct collective_order {
  collective_operation operation;
  std::string_view name;
  std::string_view idea; ///< The algorithm in a few words, with the source.

  int (*chunks)(int ranks); ///< The number of chunks in the array.
  int (*steps)(int ranks);  ///< The number of steps that each rank runs.
  collective_step (*step)(int rank, int ranks, int index);

  collective_cost (*cost)(int ranks, double bytes);
  /// The growth of the time, of all sent bytes and of peak_bytes, as formulas in n
  /// bytes and K ranks.
  std::string_view growth;

  /// True if received values go to the array that the rank sends from. False: received
  /// values go to a second array, which may be cut in another way.
  bool in_place = true;
};

} // namespace troupe
