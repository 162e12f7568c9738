#pragma once

#include "actors/plan.hpp"

#include <algorithm>

namespace troupe {

/// A rank's connection to all others in virtual time. It is full-duplex: what is sent
/// occupies it for bytes / bandwidth, one message after another, and arrives a latency
/// after its last byte has left, whatever is received meanwhile. So one round in which
/// each rank sends n bytes and waits for as many takes latency + n / bandwidth, as in
/// the textbooks. Where a `link_cost` alone is asked, as between stages, messages to
/// different ranks pass one another; here they wait in line.
///
/// To receive occupies nothing: in every order of the catalog a rank hears of one other
/// a round. Only in trees of ranks that are no power of two may some run ahead of a
/// round, and two messages reach one rank at once.
class port {
public:
  explicit port(link_cost link) : link_(link) {
    // nop
  }

  /// Sends a message at `now`, or as soon as those before it have left; returns when it
  /// arrives. \pre now never decreases
  nanoseconds send(double bytes, nanoseconds now) {
    const auto occupied = link_.of(bytes) - link_.latency;
    free_at_ = std::max(now, free_at_) + occupied;
    return free_at_ + link_.latency;
  }

  /// When everything sent so far has left.
  nanoseconds free_at() const { return free_at_; }

private:
  link_cost link_;
  nanoseconds free_at_ = 0;
};

} // namespace troupe
