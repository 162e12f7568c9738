// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

namespace troupe {

/// A lock of a folder, held by one object at a time in all processes together, until
/// the object's destructor. Where a file system has no locks, or a folder cannot be
/// opened, every object gets the lock.
class folder_lock {
public:
  folder_lock() = default;
  ~folder_lock();

  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

  /// Locks the folder; at most one call per object. Returns false if another object, of
  /// this or another process, holds the lock.
  bool try_lock(const std::filesystem::path& folder);

  /// Locks the folder, and blocks while another object holds the lock; at most one
  /// call of try_lock() or wait() per object.
  void wait(const std::filesystem::path& folder);

private:
  int folder_ = -1;
};

} // namespace troupe
