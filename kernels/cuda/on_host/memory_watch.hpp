// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::on_host {

/// Where a thread of a launch is: what it does is ordered behind what others did before
/// barriers that both came to.
struct moment {
  std::int64_t launch = 0; ///< Counted from 1.
  std::int64_t block = 0;
  int thread = 0;     ///< Of the block.
  int barriers = 0;   ///< Of the whole block that it has passed,
  int warp_syncs = 0; ///< and of its warp.
  int stream = 0;     ///< Launches of one are ordered; 0: behind all, and before all.
  std::int64_t issued = 0; ///< The instant at which it was launched.
};

enum class access_kind : std::uint8_t {
  read,
  write,
  atomic,
  begun_write ///< It may come at once or later: until `write` nobody may read.
};

/// What a kernel may do with an array.
struct watched_array {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t value = 1; ///< Bytes of one: accesses to two do not concern each other.
  bool may_write = true;
  bool holds_values = true; ///< Else nobody may read what nobody has written.
};

/// Of each stream the last launch that something is behind.
using progress = std::map<int, std::int64_t>;

/// Looks on at the accesses of kernels to arrays, one thread after another, and knows
/// by happens-before which of them may come in another order on a GPU.
///
/// Two accesses of a launch to one value, one at least a write, are a race unless both
/// are atomic, the same thread makes them, or a barrier that both threads come to lies
/// between. Those of two launches on two streams are, unless this machine knew that the
/// first was over when it launched the second, or the second's stream had waited for a
/// mark behind the first. Of reads behind a write, those of the
/// last two streams are kept. Safe to use from several threads.
class memory_watch {
public:
  void add(const void* array, watched_array what);
  void rename(const void* array, const std::string& to);
  void remove(const void* array);

  /// Whose it is, for sentences about it.
  void name_launch(std::int64_t launch, const std::string& of);

  /// Somebody here knows since an instant that launches up to one are over on a stream.
  void report_end(int stream, std::int64_t launch, std::int64_t instant);

  /// What a mark on a stream is behind: launches there up to one, and what the stream
  /// has waited for.
  progress progress_of(int stream, std::int64_t launch);

  /// A stream has waited for a mark.
  void pass(int stream, const progress& order);

  /// What is wrong with an access; empty: nothing. \param from the address of the code
  std::string judge(const void* address, std::int64_t bytes, access_kind what,
                    const moment& when, const void* from);

private:
  struct access {
    moment when;
    const void* from = nullptr;
    bool atomic = false;
  };

  /// The last write of a value, and of the reads behind it what any write to come
  /// needs.
  struct cell {
    access write, read, read_of_other_stream;
    bool has_value = false;
    bool read_by_warps = false; // several, of the block and since the barrier of `read`
    bool read_by_threads = false; // several, of the warp and since its sync
    bool read_by_blocks = false;  // several, of the launch
  };

  struct watched {
    watched_array what;
    std::vector<cell> cells;
  };

  using arrays = std::map<const std::byte*, watched>;

  arrays::iterator find(const void* address);
  bool streams_are_ordered(const moment& before, const moment& when) const;
  bool is_ordered(const access& before, const moment& when) const;
  bool reads_are_ordered(const cell& at, const moment& when) const;
  std::string who(const moment& when) const;
  static void note_read(cell& at, const moment& when, const void* from);

  /// Launches up to this one are known to be over since then.
  struct known_end {
    std::int64_t launch, since;
  };

  std::mutex lock_;
  arrays arrays_;
  std::map<int, std::vector<known_end>> ends_;   // of each stream, in order
  std::map<int, progress> passed_;               // what each stream has waited for
  std::map<std::int64_t, std::string> launches_; // whose they are
};

} // namespace troupe::on_host
