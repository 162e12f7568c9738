// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/tensors.hpp"
#include "messaging/wire/alternatives.hpp"

#include <stdexcept>

namespace troupe::wire {

/// Encodes tensor messages between stages (alternatives.hpp).
struct tensor_codec {
  using enum schema::ActorMail::Which;

  static void write(builder to, const activation& m) {
    refuse_unfinished(m);
    wire::write(to.initActivation(), m.header);
  }
  static activation read(alternative<ACTIVATION>, reader from) {
    return {.header = wire::read(from.getActivation())};
  }
  static void tensors(maybe_const<activation> auto& m, auto visit) { visit(m.payload); }

  static void write(builder to, const labels& m) {
    wire::write(to.initLabels(), m.header);
  }
  static labels read(alternative<LABELS>, reader from) {
    return {.header = wire::read(from.getLabels()), .payload = {}};
  }
  static void tensors(maybe_const<labels> auto& m, auto visit) { visit(m.payload); }

  static void write(builder to, const gradient& m) {
    refuse_unfinished(m);
    wire::write(to.initGradient(), m.header);
  }
  static gradient read(alternative<GRADIENT>, reader from) {
    return {.header = wire::read(from.getGradient())};
  }
  static void tensors(maybe_const<gradient> auto& m, auto visit) { visit(m.payload); }

private:
  /// Throws for a tensor that a GPU may still write: the tensor must not leave the
  /// process.
  template <class Message>
  static void refuse_unfinished(const Message& m) {
    if (m.pending_write && !m.header.is_call())
      throw std::logic_error{"a tensor is sent to another process before it is made"};
  }
};

} // namespace troupe::wire
