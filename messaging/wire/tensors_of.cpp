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

  void all(auto& of) {
    for (auto& one : of)
      see(one);
  }

  template <class Mail>
  void operator()(Mail& m) {
    using mail_type = std::remove_const_t<Mail>;
    if constexpr (std::is_same_v<mail_type, mail::letter>) {
      std::visit(*this, m.what);
    } else if constexpr (std::is_same_v<mail_type, mail::snapshot>) {
      all(m.parameters);
    } else if constexpr (std::is_same_v<mail_type, mail::collected>) {
      all(m.parameters);
      all(m.gradients);
    } else if constexpr (std::is_same_v<mail_type, mail::saved>) {
      all(m.versions);
      all(m.moments);
    } else if constexpr (std::is_same_v<mail_type, mail::recalled>) {
      all(m.copies.versions);
      all(m.copies.moments);
    } else if constexpr (std::is_same_v<mail_type, mail::version_made>) {
      all(m.parameters);
      all(m.gradients);
    } else if constexpr (requires { m.payload; }) {
      see(m.payload);
    }
  }
};

template <class See>
tensor_visitor(See) -> tensor_visitor<See>;

/// Pointers to the tensors of one type, in a message that the caller may change.
template <class Wanted>
std::vector<Wanted*> pointers(actor_mail& what) {
  std::vector<Wanted*> result;
  auto see = [&result](auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), Wanted&>)
      result.push_back(&tensor);
  };
  std::visit(tensor_visitor{see}, what);
  return result;
}

} // namespace

std::vector<buffer*> buffers_of(actor_mail& what) {
  return pointers<buffer>(what);
}

std::vector<std::vector<float>*> arrays_of(actor_mail& what) {
  return pointers<std::vector<float>>(what);
}

std::size_t tensors_of(const actor_mail& what) {
  std::size_t result = 0;
  std::visit(tensor_visitor{[&result](const auto&) { ++result; }}, what);
  return result;
}

} // namespace troupe::wire
