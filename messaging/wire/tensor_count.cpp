// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/wire/codec.hpp"

#include <type_traits>

namespace troupe::wire {

namespace {

/// Calls `see` with each buffer of a message that leaves the process, and then with
/// each array.
template <class See>
struct tensor_visitor {
  See see;

  void see_all(auto& tensors) {
    for (auto& tensor : tensors)
      see(tensor);
  }

  template <class Mail>
  void operator()(Mail& m) {
    using mail_type = std::remove_const_t<Mail>;
    if constexpr (std::is_same_v<mail_type, mail::meeting_message>) {
      std::visit(*this, m.body);
    } else if constexpr (std::is_same_v<mail_type, mail::snapshot>) {
      see_all(m.parameters);
    } else if constexpr (std::is_same_v<mail_type, mail::collected>) {
      see_all(m.parameters);
      see_all(m.gradients);
    } else if constexpr (std::is_same_v<mail_type, mail::saved>) {
      see_all(m.versions);
      see_all(m.state);
    } else if constexpr (std::is_same_v<mail_type, mail::kept_state>) {
      see_all(m.copies.versions);
      see_all(m.copies.state);
    } else if constexpr (std::is_same_v<mail_type, mail::version_made>) {
      see_all(m.parameters);
      see_all(m.gradients);
    } else if constexpr (requires { m.payload; }) {
      see(m.payload);
    }
  }
};

template <class See>
tensor_visitor(See) -> tensor_visitor<See>;

/// Pointers to the tensors of one type, in a message that the caller may change.
template <class Wanted>
std::vector<Wanted*> pointers(actor_message& message) {
  std::vector<Wanted*> result;
  auto see = [&result](auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), Wanted&>)
      result.push_back(&tensor);
  };
  std::visit(tensor_visitor{see}, message);
  return result;
}

} // namespace

std::vector<buffer*> buffers_of(actor_message& message) {
  return pointers<buffer>(message);
}

std::vector<std::vector<float>*> arrays_of(actor_message& message) {
  return pointers<std::vector<float>>(message);
}

std::size_t tensor_count(const actor_message& message) {
  std::size_t result = 0;
  std::visit(tensor_visitor{[&result](const auto&) { ++result; }}, message);
  return result;
}

} // namespace troupe::wire
