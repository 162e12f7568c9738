// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

#include <utility>

namespace troupe {

/// An open file of the operating system, owned by the object and closed by the
/// destructor. A negative number: no file.
class descriptor {
public:
  explicit descriptor(int number = -1) : number_(number) {
    // nop
  }

  ~descriptor() {
    if (number_ >= 0)
      ::close(number_);
  }

  descriptor(descriptor&& source) noexcept
    : number_(std::exchange(source.number_, -1)) {
    // nop
  }

  descriptor& operator=(descriptor&& source) noexcept {
    std::swap(number_, source.number_);
    return *this;
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

private:
  int number_;
};

} // namespace troupe
