// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace troupe {

/// The name of a message's type, without namespaces: "arrived".
template <class Message>
constexpr std::string_view name_of_message() {
  std::string_view text =
    __PRETTY_FUNCTION__; // "... [with Message = troupe::mail::x; ..."
  text.remove_prefix(text.find("Message = ") + std::string_view{"Message = "}.size());
  text = text.substr(0, text.find_first_of(";]"));
  const auto scope = text.rfind(':');
  return scope == text.npos ? text : text.substr(scope + 1);
}

} // namespace troupe
