// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::on_host {
// A detector of races and wrong accesses in kernels, by happens-before.

/// The position of a thread in a launch. A thread's work after a barrier is ordered
/// after the work of the other threads before that barrier.
struct launch_position {
  std::int64_t launch = 0; ///< Number of the launch, counted from 1.
  std::int64_t block = 0;  ///< Index in the grid.
  int thread = 0;          ///< Index in the block.
  int barriers = 0;        ///< Barriers of the whole block that the thread has passed.
  int warp_syncs = 0;      ///< Barriers of the warp that the thread has passed.
  /// Number of the stream, whose launches are ordered; 0 if the launch is ordered with
  /// the launches of all streams.
  int stream = 0;
  std::int64_t issued = 0; ///< Instant of the call that launched.
};

enum class access_kind : std::uint8_t {
  read,
  write,
  atomic,
  begun_write ///< May happen now or later; no thread may read until `write`.
};

/// An array in memory, and the accesses that a kernel may make.
struct watched_array {
  std::string name;
  std::int64_t bytes = 0;
  /// Bytes of one value; accesses to different values do not conflict.
  std::int64_t value = 1;
  bool may_write = true;
  bool holds_values = true; ///< If false, no thread may read before the first write.
};

/// For each stream, the number of the last launch that comes before an event, or before
/// a position of some stream.
using progress = std::map<int, std::int64_t>;

/// Checks the accesses of kernels to arrays, in the order in which this machine runs
/// threads. Happens-before decides which accesses may come in another order on a GPU.
///
/// Two accesses of a launch to one value are a race if at least one is a write. The
/// exceptions: both accesses are atomic, one thread makes both, or a barrier of both
/// threads lies between the accesses.
///
/// Two accesses of launches on two streams, at least one of which is a write, are a
/// race too. There is no race if this machine knew the end of the first launch when the
/// second launch was issued. Nor is there a race if the second stream had waited for an
/// event after the first launch. Launches without a stream are ordered with all
/// launches. Of reads after a write, the last reads of the last two streams are kept,
/// so a race with earlier reads may stay unnoticed. Safe to use from several threads.
class memory_watch {
public:
  /// Adds an array without accesses so far; replaces an array at the same address.
  void add(const void* array, watched_array description);
  /// Changes the name of an array; no effect on an unknown address.
  void rename(const void* array, const std::string& to);
  /// Forgets an array, whose accesses are errors from now on.
  void remove(const void* array);

  /// Sets the name of a launch in error messages.
  void name_launch(std::int64_t launch, const std::string& name);

  /// Records that a host thread has observed, at `instant`, the end of a stream's
  /// launches up to number `launch`. Launches that are issued after `instant` come
  /// after the observed launches.
  void report_end(int stream, std::int64_t launch, std::int64_t instant);

  /// The launches that an event on `stream` comes after: the launches of `stream` up to
  /// `launch`, and the launches that `stream` has waited for.
  progress progress_of(int stream, std::int64_t launch);

  /// Records that a stream has waited for an event with the progress `order`.
  void pass(int stream, const progress& order);

  /// Checks and records an access. Returns one sentence about the error; empty if there
  /// is none.
  /// \param from the address of the code that makes the access
  std::string check_access(const void* address, std::int64_t bytes, access_kind kind,
                           const launch_position& when, const void* from);

private:
  struct access {
    launch_position when;
    const void* from = nullptr;
    bool atomic = false;
  };

  /// The last write of a value, and the reads since then, against which the next write
  /// is checked.
  struct cell {
    access write, read, read_of_other_stream;
    bool has_value = false;
    // Several warps of the block have read since the last barrier before `read`.
    bool read_by_warps = false;
    // Several threads of the warp have read since the last barrier of the warp.
    bool read_by_threads = false;
    // Several blocks of the launch have read.
    bool read_by_blocks = false;
  };

  struct watched {
    watched_array description;
    std::vector<cell> cells;
  };

  using arrays = std::map<const std::byte*, watched>;

  arrays::iterator find(const void* address);
  bool streams_are_ordered(const launch_position& earlier,
                           const launch_position& when) const;
  bool is_ordered(const access& earlier, const launch_position& when) const;
  bool reads_are_ordered(const cell& history, const launch_position& when) const;
  std::string describe(const launch_position& when) const;
  static void note_read(cell& history, const launch_position& when, const void* from);

  /// Launches up to `launch` are known to have ended since the instant `since`.
  struct known_end {
    std::int64_t launch, since;
  };

  std::mutex lock_;
  arrays arrays_;
  std::map<int, std::vector<known_end>> ends_;   // of each stream, in order
  std::map<int, progress> passed_;               // waited for, by stream
  std::map<std::int64_t, std::string> launches_; // names of launches
};

} // namespace troupe::on_host
