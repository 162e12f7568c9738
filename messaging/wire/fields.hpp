// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/performers.hpp"
#include "messaging/mail/tensors.hpp"
#include "messaging/position.hpp"
#include "messaging/wire/mail.capnp.h"
#include "messaging/wire/words.hpp"
#include "schedules/action.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::wire {

// Encoding of fields that many messages have. Each type has a function that writes a
// value into a message, and a function that reads a value. Readers throw bad_bytes for
// values that our senders never write.

/// The largest number of bytes of a tensor in a message. Products of this number and
/// the size of a value are far from overflow.
inline constexpr std::int64_t most_bytes = std::int64_t{1} << 40;
/// The largest number of 4-byte values of a tensor in a message.
inline constexpr std::int64_t most_values = most_bytes / 4;

/// Refuses a number.
/// \throws bad_bytes that names the number, and the least and the largest allowed
/// number
[[noreturn]] void refuse_number(std::int64_t n, std::int64_t least, std::int64_t most,
                                const char* name);

/// Returns the number `n`.
/// \throws bad_bytes unless `n` is from `least` to `most`
inline std::int64_t within(std::int64_t n, std::int64_t least, std::int64_t most,
                           const char* name) {
  if (n < least || n > most)
    refuse_number(n, least, most, name);
  return n;
}

/// The largest number that readers accept: no sum or difference of two such numbers
/// overflows. A run of more than most_of<int> microbatches is refused
/// (schedules/schedule.cpp).
template <class Number>
inline constexpr std::int64_t most_of = (std::int64_t{1} << (8 * sizeof(Number) - 2))
                                        - 1;

/// Returns the number `n`.
/// \throws bad_bytes if `n` is negative, or above most_of
template <class Number>
Number natural(Number n, const char* name) {
  return static_cast<Number>(within(n, 0, most_of<Number>, name));
}

/// Reads an index in a list of experts; -1: no expert.
inline int expert_or_none(int n) {
  return static_cast<int>(within(n, -1, most_of<int>, "an expert"));
}

/// Reads a version. Versions that were made before a resumed run have negative numbers.
inline int read_version(std::int64_t n) {
  return static_cast<int>(within(n, -most_of<int>, most_of<int>, "a version"));
}

/// Reads the number of a call, for values that GPUs exchange themselves; -1: no call.
inline int read_call(std::int64_t n) {
  return static_cast<int>(within(n, tensor_header::no_call, most_of<int>, "a call"));
}

/// Reads a time in nanoseconds, positive or negative.
inline std::int64_t read_time(std::int64_t n) {
  constexpr auto most = most_of<std::int64_t>;
  return within(n, -most, most, "a time");
}

/// Reads an enum's value. The schema has the values in the order of the program's enum.
/// \param last the last value of the enum
/// \throws bad_bytes if the value is above `last`
template <class Enum, class OfSchema>
Enum known(OfSchema value, Enum last, const char* name) {
  return static_cast<Enum>(
    within(static_cast<std::int64_t>(value), 0, static_cast<std::int64_t>(last), name));
}

template <class OfSchema, class Enum>
OfSchema to_schema(Enum value) {
  return static_cast<OfSchema>(value);
}

template <class Vector>
unsigned length(const Vector& list) {
  return static_cast<unsigned>(list.size());
}

template <class List, class Vector>
void write_numbers(List to, const Vector& from) {
  for (unsigned i = 0; i < to.size(); ++i)
    to.set(i, from[i]);
}

/// Returns the results of `read` for each element.
/// \throws bad_bytes if `left` is too small for the results
template <class List, class Read>
auto read_list(List from, read_budget& left, Read read) {
  std::vector<decltype(read(from[0]))> result;
  left.spend(from.size(), sizeof(read(from[0])));
  result.reserve(from.size());
  for (unsigned i = 0; i < from.size(); ++i)
    result.push_back(read(from[i]));
  return result;
}

template <class Number, class List>
std::vector<Number> read_numbers(List from, read_budget& left) {
  return read_list(from, left, [](Number n) { return n; });
}

template <class Number, class List>
std::vector<Number> read_naturals(List from, read_budget& left, const char* name) {
  return read_list(from, left, [name](Number n) { return natural(n, name); });
}

/// Returns `count` empty buffers, or empty arrays of values.
/// \throws bad_bytes if `left` is too small for the results
template <class Empty>
std::vector<Empty> read_count(std::uint32_t count, read_budget& left) {
  left.spend(count, sizeof(Empty));
  return std::vector<Empty>(count);
}

/// Returns a view of `from`, which must outlive the view.
capnp::Text::Reader as_text(const std::string& from);

/// Reads a text of one line that may be printed: line breaks are escaped
/// (foreign_text).
std::string read(capnp::Text::Reader from, read_budget& left);
/// Reads a text of several lines that may be printed: line breaks are kept.
std::string read_lines(capnp::Text::Reader from, read_budget& left);

/// Reads a text exactly as sent: for parsing, never for printing.
std::string read_exactly(capnp::Text::Reader from, read_budget& left);

void write(schema::Position::Builder to, const position& from);
position read(schema::Position::Reader from);

void write(schema::Performer::Builder to, const performer& from);
performer read(schema::Performer::Reader from);

void write(schema::Action::Builder to, const action& from);
action read(schema::Action::Reader from);

void write(schema::TensorHeader::Builder to, const tensor_header& from);
tensor_header read(schema::TensorHeader::Reader from);

} // namespace troupe::wire
