// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

/// Drops root's rights during the object's lifetime: a test that root runs then acts as
/// an ordinary user. Other users' rights stay.
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
