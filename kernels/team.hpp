// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

namespace troupe {

/// The threads that share the kernels of one rank: the caller's thread and `size() - 1`
/// helpers. The slices of most kernels depend on shapes alone. Slices of products also
/// depend on the size of the team, and change no bit. So results do not depend on the
/// size of the team. One kernel at a time; ranks must not share a team.
class team {
public:
  /// \param threads size of the team; a number below 1 counts as 1
  /// \throws no_thread
  explicit team(int threads = 1);
  ~team();
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  int size() const { return size_; }

  /// Calls work(slice, worker) for each slice in [0, slices), with workers in [0,
  /// size()), and returns after the last call. Rethrows the first exception; some
  /// slices may then not have been called.
  template <class Work>
  void run(int slices, const Work& work) {
    if (size_ == 1 || slices == 1) {
      for (int slice = 0; slice < slices; ++slice)
        work(slice, 0);
      return;
    }
    run_on_helpers(slices, &work, [](const void* context, int slice, int worker) {
      (*static_cast<const Work*>(context))(slice, worker);
    });
  }

  /// Cuts [0, count) into one to 16 ranges, several only if each has at least `grain`
  /// indices. Calls work(first, last, worker) for each range, also for an empty one.
  template <class Work>
  void run_ranges(std::int64_t count, std::int64_t grain, const Work& work) {
    const auto slices =
      std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1, 16);
    run(static_cast<int>(slices), [&](int slice, int worker) {
      work(count * slice / slices, count * (slice + 1) / slices, worker);
    });
  }

private:
  using call = void (*)(const void* context, int slice, int worker);
  struct helpers;

  void run_on_helpers(int slices, const void* context, call work);

  int size_;
  std::unique_ptr<helpers> helpers_; // null for a team of one thread
};

} // namespace troupe
