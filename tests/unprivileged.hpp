// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

/// While it lives a test that root runs has no more rights than anybody; others have
/// none to lose.
class unprivileged {
public:
  unprivileged() : was_(geteuid()) {
    if (was_ == 0)
      is_ = seteuid(65534) == 0;
  }

  ~unprivileged() {
    if (was_ == 0 && is_)
      is_ = seteuid(was_) != 0;
  }

  unprivileged(const unprivileged&) = delete;
  unprivileged& operator=(const unprivileged&) = delete;

private:
  uid_t was_;
  bool is_ = true;
};
