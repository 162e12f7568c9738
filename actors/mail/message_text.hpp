// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/message_name.hpp"

#include <string>
#include <variant>

// The text of a message for traces.

namespace troupe {

/// A message as text, for golden traces: the type, and the action, microbatch, bucket,
/// source or server, if the message names any. For a message of a collective also the
/// instance, round, sender and receiver. For a meeting message: the text of the
/// content.
template <class Message>
std::string envelope_text(const Message& m) {
  if constexpr (requires { m.body.valueless_by_exception(); }) {
    return std::visit([](const auto& content) { return envelope_text(content); },
                      m.body);
  } else {
    std::string result{name_of_message<Message>()};
    const auto add = [&result](const std::string& word) { result += " " + word; };
    const auto add_number = [&](const char* name, auto value) {
      add(name + std::to_string(value));
    };
    if constexpr (requires { m.header.microbatch; })
      add_number("microbatch ", m.header.microbatch);
    if constexpr (requires { m.measured.action.microbatch; })
      add(to_string(m.measured.action, true) + (m.measured.part ? " in part" : ""));
    else if constexpr (requires { m.action.microbatch; })
      add(to_string(m.action, true));
    if constexpr (requires { m.instance; })
      add(std::to_string(m.instance) + " round " + std::to_string(m.round) + " from "
          + std::to_string(m.from) + " to " + std::to_string(m.to));
    if constexpr (requires { m.bucket; })
      add_number("bucket ", m.bucket);
    if constexpr (requires {
                    m.rows;
                    m.source;
                  })
      add_number("from source ", m.source);
    if constexpr (requires { m.server; })
      add_number("from server ", m.server);
    return result;
  }
}

} // namespace troupe
