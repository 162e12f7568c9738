// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/resource.h>

namespace troupe {

/// Limits the size of files to `bytes` bytes during the object's lifetime. A write
/// beyond the limit raises SIGXFSZ.
class file_size_limit {
public:
  explicit file_size_limit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &was_);
    const rlimit limit{bytes, was_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }

  ~file_size_limit() { setrlimit(RLIMIT_FSIZE, &was_); }

  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;

private:
  rlimit was_{};
};

} // namespace troupe
