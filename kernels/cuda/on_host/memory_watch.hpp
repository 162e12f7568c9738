#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::on_host {

/// Where a thread of a launch is: what it does is ordered behind what others did before
/// barriers that both came to.
struct moment {
  std::int64_t launch = 0; ///< Counted from 1; launches are ordered.
  std::int64_t block = 0;
  int thread = 0;     ///< Of the block.
  int barriers = 0;   ///< Of the whole block that it has passed,
  int warp_syncs = 0; ///< and of its warp.
};

enum class access_kind : std::uint8_t { read, write, atomic };

/// What a kernel may do with an array.
struct watched_array {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t value = 1; ///< Bytes of one: accesses to two do not concern each other.
  bool may_write = true;
  bool holds_values = true; ///< Else nobody may read what nobody has written.
};

/// Looks on at the accesses of kernels to arrays, one thread after another, and knows
/// by happens-before which of them may come in another order on a GPU.
///
/// Two accesses of a launch to one value, one at least a write, are a race unless both
/// are atomic, the same thread makes them, or a barrier that both threads come to lies
/// between.
class memory_watch {
public:
  void add(const void* array, watched_array what);
  void remove(const void* array);

  /// What is wrong with an access; empty: nothing. \param from the address of the code
  std::string judge(const void* address, std::int64_t bytes, access_kind what,
                    const moment& when, const void* from);

private:
  struct mark {
    moment when;
    const void* from = nullptr;
    bool atomic = false;
  };

  /// The last write of a value, and of the reads behind it what any write to come
  /// needs.
  struct cell {
    mark write, read;
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
  static bool is_ordered(const mark& before, const moment& when);
  static bool reads_are_ordered(const cell& at, const moment& when);
  static void note_read(cell& at, const moment& when, const void* from);

  arrays arrays_;
};

} // namespace troupe::on_host
