// SPDX-License-Identifier: BSD-3-Clause
#include "actors/mail/relay_ledger.hpp"

#include <stdexcept>

namespace troupe {

namespace {

std::string text_of(const std::string& kind, const tensor_header& header) {
  return "the " + kind + " of microbatch " + std::to_string(header.microbatch) + " ("
         + std::to_string(header.samples) + " x " + std::to_string(header.values)
         + " values)";
}

} // namespace

std::string name_of_relay(int pipeline, int stage) {
  return "the relay between stage " + std::to_string(stage) + " and stage "
         + std::to_string(stage + 1)
         + (pipeline > 0 ? " (replica " + std::to_string(pipeline) + ")" : "");
}

void relay_ledger::note(std::deque<entry>& to, const entry& message) {
  const std::lock_guard guard{lock_};
  to.push_back(message);
}

void relay_ledger::cross_out(std::deque<entry>& from, const std::string& kind,
                             const entry& message) {
  const std::lock_guard guard{lock_};
  if (!from.empty() && from.front() == message)
    return from.pop_front();
  const auto sent = name_ + " sent on " + text_of(kind, message.header);
  if (from.empty())
    throw std::runtime_error(sent + ", but had already sent every received " + kind
                             + ": a relay sends each message once");
  const auto& expected = from.front();
  if (text_of(kind, expected.header) != text_of(kind, message.header))
    throw std::runtime_error(
      sent + ", but had received " + text_of(kind, expected.header)
      + " before: a relay keeps the order and the sizes of messages");
  if (expected.header != message.header)
    throw std::runtime_error(sent + " with another header than was received");
  throw std::runtime_error(sent + " with another payload than was received");
}

std::string relay_ledger::holds() const {
  const std::lock_guard guard{lock_};
  if (forward_.empty() && backward_.empty())
    return {};
  return name_ + " received "
         + (!forward_.empty() ? text_of("activation", forward_.front().header)
                              : text_of("gradient", backward_.front().header))
         + ", and has not sent it on";
}

} // namespace troupe
