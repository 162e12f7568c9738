// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace troupe {

folder_lock::~folder_lock() {
  if (folder_ >= 0)
    close(folder_);
}

bool folder_lock::try_lock(const std::filesystem::path& folder) {
  folder_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return folder_ < 0 || flock(folder_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

void folder_lock::wait(const std::filesystem::path& folder) {
  folder_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ >= 0)
    while (flock(folder_, LOCK_EX) != 0 && errno == EINTR)
      continue;
}

} // namespace troupe
