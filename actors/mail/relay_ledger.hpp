// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/tensors.hpp"

#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace troupe {

/// Where a relay stands: "the relay between stage 0 and stage 1".
/// \param pipeline as relay_place::replica says it \param stage the lower one
std::string name_of_relay(int pipeline, int stage);

/// What a relay has been given and has not sent on yet. The stage that sends notes each
/// message here first, and the one that gets it crosses it out. Thread-safe.
class relay_ledger {
public:
  explicit relay_ledger(std::string name) : name_(std::move(name)) {
    // nop
  }

  const std::string& name() const { return name_; }

  /// A stage gives it to the relay.
  void given(const activation& what) { note(forward_, entry_of(what)); }
  void given(const gradient& what) { note(backward_, entry_of(what)); }

  /// The relay has sent it on. \throws std::runtime_error if it was not next, or is not
  /// as it was: says what the relay was given
  void sent_on(const activation& what) {
    cross_out(forward_, "activation", entry_of(what));
  }
  void sent_on(const gradient& what) {
    cross_out(backward_, "gradient", entry_of(what));
  }

  /// A sentence on what the relay should send on next, an activation first; empty if it
  /// has nothing.
  std::string holds() const;

private:
  struct entry {
    tensor_header header;
    const float* values; // where they are
    bool operator==(const entry&) const = default;
  };

  template <class Message>
  static entry entry_of(const Message& what) {
    return {what.header, what.payload.data()};
  }
  void note(std::deque<entry>& to, const entry& what);
  void cross_out(std::deque<entry>& from, const std::string& kind, const entry& what);

  std::string name_;
  mutable std::mutex lock_;
  std::deque<entry> forward_, backward_; // in the order in which they were given
};

} // namespace troupe
