// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/tensors.hpp"

#include <deque>
#include <mutex>
#include <string>
#include <utility>

// Checks that a user's relay sends on every message, once and in order.

namespace troupe {

/// The name of a relay: "the relay between stage 0 and stage 1", with the pipeline's
/// index if that index is not 0.
/// \param pipeline data replica times number of directions, plus direction
/// \param stage the lower stage
std::string name_of_relay(int pipeline, int stage);

/// The messages that a relay has received and has not sent on yet. The sending stage
/// enters each message before sending; the stage that receives the relay's message
/// removes the entry. Thread-safe.
class relay_ledger {
public:
  explicit relay_ledger(std::string name) : name_(std::move(name)) {
    // nop
  }

  const std::string& name() const { return name_; }

  /// Enters a message that a stage sends to the relay.
  void received(const activation& message) { note(forward_, entry_of(message)); }
  void received(const gradient& message) { note(backward_, entry_of(message)); }

  /// Removes a message that the relay has sent on.
  /// \throws std::runtime_error if the relay holds no message of this kind, or if
  /// `message` differs from the message that the relay should send on next. The text
  /// names `message`; if the order or the sizes are wrong, the text also names the next
  /// message.
  void sent_on(const activation& message) {
    cross_out(forward_, "activation", entry_of(message));
  }
  void sent_on(const gradient& message) {
    cross_out(backward_, "gradient", entry_of(message));
  }

  /// Returns a sentence about the next message that the relay should send on, an
  /// activation first; empty if the relay holds no message.
  std::string holds() const;

private:
  struct entry {
    tensor_header header;
    const float* values; // address of the payload's values
    bool operator==(const entry&) const = default;
  };

  template <class Message>
  static entry entry_of(const Message& message) {
    return {message.header, message.payload.data()};
  }
  void note(std::deque<entry>& to, const entry& message);
  void cross_out(std::deque<entry>& from, const std::string& kind,
                 const entry& message);

  std::string name_;
  mutable std::mutex lock_;
  std::deque<entry> forward_, backward_; // in the order of receipt
};

} // namespace troupe
