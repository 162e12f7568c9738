// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/wire/fields.hpp"

#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace troupe::wire {

// Encoding of one message type in a union of the schema. A codec is a struct with these
// static functions for each message type, side by side:
//
//   write(to, message)        sets the union's alternative, without values of tensors
//   read(kind, from[, left])  returns the message, with empty tensors; `kind` is the
//                             alternative, `left` bounds allocations
//   tensors(message, visit)   only for types with tensors: calls `visit` with each
//                             buffer, or list of buffers or arrays, in order
//
// A type without `write` never leaves its process.

using builder = schema::ActorMail::Builder;
using reader = schema::ActorMail::Reader;

/// An alternative of a schema's union, as a type: selects a reader.
template <std::size_t Number>
struct alternative {};

/// `Message`, or `const Message`.
template <class Given, class Message>
concept maybe_const = std::same_as<std::remove_const_t<Given>, Message>;

/// The functions of several codecs.
template <class... Codecs>
struct joined_codec : Codecs... {
  using Codecs::read...;
  using Codecs::tensors...;
  using Codecs::write...;
};

/// Reads the alternative of a union, whose readers `Codec` has for each of `I`.
/// \throws bad_bytes with `error` for another alternative
template <class Result, class Codec, class Reader, std::size_t... I>
Result read_alternative(Reader from, read_budget& left, std::index_sequence<I...>,
                        const char* error) {
  std::optional<Result> result;
  const auto read = [&]<class Kind>(Kind kind) {
    if constexpr (requires { Codec::read(kind, from); })
      result = Codec::read(kind, from);
    else
      result = Codec::read(kind, from, left);
    return true;
  };
  if (!((from.which() == I && read(alternative<I>{})) || ...))
    throw bad_bytes{error};
  return std::move(*result);
}

} // namespace troupe::wire
