// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

#include <utility>

namespace troupe {

/// An open file of the operating system, closed at the end. Negative: none.
class descriptor {
public:
  explicit descriptor(int number = -1) : number_(number) {
    // nop
  }

  ~descriptor() {
    if (number_ >= 0)
      ::close(number_);
  }

  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {
    // nop
  }

  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

private:
  int number_;
};

} // namespace troupe
