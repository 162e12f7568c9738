// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/wire/codec.hpp"
#include "tests/dice.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// Messages with a value in each field, and a comparison of messages: field by field,
/// and floating-point values bit by bit.
namespace some_mail {

using namespace troupe;

// The number of fields of an aggregate: the largest number of initializers.
struct anything {
  template <class T>
  operator T() const;
};

template <class T, std::size_t... I>
constexpr bool made_of(std::index_sequence<I...>) {
  return requires {
    T{(static_cast<void>(I), anything{})...};
  };
}

template <class T, std::size_t N = 20>
constexpr std::size_t field_count() {
  if constexpr (N == 0 || made_of<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return field_count<T, N - 1>();
}

/// Calls `use` with all fields of an aggregate.
template <class T, class Use>
auto with_fields(T& of, Use use) {
  constexpr auto n = field_count<std::remove_const_t<T>>();
  if constexpr (n == 0) {
    return use();
  } else if constexpr (n == 1) {
    auto& [a] = of;
    return use(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = of;
    return use(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = of;
    return use(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = of;
    return use(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = of;
    return use(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = of;
    return use(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = of;
    return use(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = of;
    return use(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = of;
    return use(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = of;
    return use(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = of;
    return use(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = of;
    return use(a, b, c, d, e, f, g, h, i, j, k, l);
  } else {
    static_assert(n == 14, "one more case is needed");
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = of;
    return use(a, b, c, d, e, f, g, h, i, j, k, l, m, o);
  }
}

/// Values that stay on a rank: a message with such a value is never sent to another.
template <class T, class... Locals>
constexpr bool is_one_of = (std::is_same_v<T, Locals> || ...);
template <class T>
constexpr bool is_local =
  is_one_of<T, std::optional<mail::lent_arrays>, std::optional<mail::update_part>,
            std::function<void()>, std::exception_ptr, std::shared_ptr<gpu_completion>>;

template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;

/// Whether a field arrived as sent; tensors arrive empty.
template <class T>
bool same(const T& sent, const T& came) {
  if constexpr (std::is_same_v<T, buffer>) {
    return !came;
  } else if constexpr (is_local<T>) {
    return !sent && !came;
  } else if constexpr (std::is_same_v<T, std::vector<float>>) {
    return came.empty();
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(sent) == std::bit_cast<std::uint64_t>(came);
  } else if constexpr (is_vector<T>) {
    if (sent.size() != came.size())
      return false;
    for (std::size_t i = 0; i < sent.size(); ++i)
      if (!same(sent[i], came[i]))
        return false;
    return true;
  } else if constexpr (requires { std::variant_size<T>::value; }) {
    return sent.index() == came.index()
           && std::visit(
             [&](const auto& s) {
               return same(s, std::get<std::remove_cvref_t<decltype(s)>>(came));
             },
             sent);
  } else if constexpr (requires { sent.has_value(); }) {
    return sent.has_value() == came.has_value() && (!sent || same(*sent, *came));
  } else if constexpr (requires { sent == came; }) {
    return sent == came;
  } else {
    return with_fields(sent, [&](const auto&... s) {
      return with_fields(came, [&](const auto&... c) { return (same(s, c) && ...); });
    });
  }
}

inline constexpr std::array<double, 9> odd_values{
  0.0,
  -0.0,
  1.0 / 3,
  std::numeric_limits<double>::infinity(),
  -std::numeric_limits<double>::infinity(),
  std::numeric_limits<double>::denorm_min(),
  -std::numeric_limits<double>::denorm_min(),
  std::bit_cast<double>(0x7ff8000000abcdefU),  // a quiet NaN,
  std::bit_cast<double>(0xfff4000000000001U)}; // and a signalling one

/// The address of a field that the messages of older files do not have; null if there
/// is none. Such a field draws no number: later fields would have other values.
template <class T>
const void* new_field_of(T& message) {
  if constexpr (requires { message.off_processor_time; })
    return &message.off_processor_time;
  else
    return nullptr;
}

/// Gives a field a value that senders may send; often an extreme value.
template <class T>
void fill(T& field, dice& random) {
  const auto all_of = [&random, new_field = new_field_of(field)](auto&... fields) {
    [[maybe_unused]] const auto fill_older = [&](auto& each) {
      if (static_cast<const void*>(&each) != new_field)
        fill(each, random);
    };
    (fill_older(fields), ...);
  };
  if constexpr (std::is_same_v<T, buffer>) {
    // nop
  } else if constexpr (std::is_same_v<T, bool>) {
    field = random.coin();
  } else if constexpr (std::is_same_v<T, double>) {
    field = random.one_of(odd_values);
  } else if constexpr (std::is_same_v<T,
                                      std::uint8_t> || std::is_same_v<T, std::byte>) {
    field = static_cast<T>(random.number(0, 63));
  } else if constexpr (std::is_same_v<T, int>) {
    field = random.one_of(std::array{0, 1, random.number(0, 1000), (1 << 30) - 1});
  } else if constexpr (std::is_integral_v<T>) {
    field = static_cast<T>(random.one_of(std::array<std::int64_t, 4>{
      0, 1, random.number(0, 1000), (std::int64_t{1} << 31) + 7}));
  } else if constexpr (std::is_same_v<T, std::string>) {
    field = random.one_of(std::array<std::string, 4>{
      "", "a", "words in a line, gr\xc3\xbc\xc3\x9f", "\\x1b"}); // foreign_text
  } else if constexpr (is_vector<T>) {
    field.resize(static_cast<std::size_t>(random.number(0, 3)));
    if constexpr (!std::is_same_v<T, std::vector<float>>)
      for (auto& element : field)
        fill(element, random);
  } else if constexpr (std::is_same_v<T, op>) {
    field = static_cast<op>(random.number(0, op_count - 1));
  } else if constexpr (std::is_same_v<T, in_pair>) {
    field = static_cast<in_pair>(random.number(0, 2));
  } else if constexpr (std::is_same_v<T, role>) {
    field = static_cast<role>(random.number(0, 3));
  } else if constexpr (std::is_same_v<T, meeting_kind>) {
    // a user's own meeting stays in the process
    field = static_cast<meeting_kind>(random.number(0, 8));
  } else if constexpr (std::is_same_v<T, std::optional<traffic>>) {
    field = static_cast<traffic>(random.number(0, traffic_kinds - 1));
    if (random.coin())
      field = {};
  } else if constexpr (is_local<T>) {
    // None: see the comment there.
  } else if constexpr (requires { std::variant_size<T>::value; }) {
    std::visit(all_of, field);
  } else if constexpr (std::is_same_v<T, collective_message>) {
    // The bytes are those of the meeting message.
    all_of(field.instance, field.round, field.from, field.to, field.range, field.values,
           field.payload, field.call);
    field.call = random.number(-1, 3);
  } else if constexpr (std::is_same_v<T, group_id>) {
    for (auto& byte : field)
      byte = static_cast<char>(random.number(-128, 127));
  } else if constexpr (std::is_same_v<T, std::array<std::uint64_t, 2>>) {
    field = {0x8000000000000001U, static_cast<std::uint64_t>(random.number(0, 1000))};
  } else {
    with_fields(field, all_of);
    // Some numbers have bounds of their own.
    if constexpr (requires { field.direction; })
      field.direction = random.number(0, 1);
    if constexpr (std::is_same_v<T, measured_action>)
      field.off_processor_time = field.end / 3 + 1;
    if constexpr (std::is_same_v<T, rank_sums>) {
      field.off_processor_time = field.busy / 3 + 1;
      field.first_start = random.coin() ? -1 : 5;
      field.held = random.number(-1, 3);
    }
    if constexpr (std::is_same_v<T, performer> || std::is_same_v<T, measured_action>)
      field.expert = random.number(-1, 3);
    if constexpr (std::is_same_v<T, tensor_header>) {
      field.values = random.number(0, 100);
      field.call = random.number(-1, 3);
    }
    if constexpr (std::is_same_v<T, mail::beat>)
      field.verdict = random.number(0, 2);
    if constexpr (std::is_same_v<T, mail::saved>)
      field.versions.resize(field.ages.size());
    if constexpr (std::is_same_v<T, mail::prepare>) {
      field.older = random.number(0, 3);
      field.state_arrays = random.number(0, 2);
    }
  }
}

/// True for a message of a kind that older files do not have. Such a message is filled
/// from numbers of its own: later messages would have other values.
template <class Variant>
bool is_new_kind(const Variant& message) {
  return std::visit(
    []<class T>(const T&) { return std::is_same_v<T, mail::update_part>; }, message);
}

/// Every alternative of a variant, filled.
template <class Variant, std::size_t... I>
std::vector<Variant> alternatives(dice& random, std::index_sequence<I...>) {
  std::vector<Variant> result{Variant{std::in_place_index<I>}...};
  for (auto& one : result) {
    dice apart{6};
    fill(one, is_new_kind(one) ? apart : random);
  }
  return result;
}

template <class Variant>
std::vector<Variant> each_of(dice& random) {
  return alternatives<Variant>(
    random, std::make_index_sequence<std::variant_size_v<Variant>>{});
}

/// Whether a meeting message may leave its rank: those about shared work may.
inline bool travels(const mail::meeting_message& l) {
  return l.body.index() <= 2 || (l.body.index() >= 7 && l.body.index() <= 9);
}

/// A message to some actor, with the sizes of the message's tensors.
inline wire::addressed_message addressed(wire::actor_message what, dice& random) {
  wire::addressed_message result{.to = {}, .message = std::move(what), .tensors = {}};
  result.to.actor = static_cast<wire::address::kind>(random.number(0, 6));
  fill(result.to.where, random);
  fill(result.to.number, random);
  const auto tensors =
    wire::buffers_of(result.message).size() + wire::arrays_of(result.message).size();
  for (std::size_t i = 0; i < tensors; ++i)
    result.tensors.push_back(
      random.one_of(std::array<std::int64_t, 3>{0, 4, std::int64_t{1} << 40}));
  return result;
}

/// A message of each kind, and a meeting message of each kind that leaves a rank.
inline std::vector<wire::addressed_message> one_of_each(dice& random) {
  std::vector<wire::addressed_message> result;
  for (auto& what : each_of<wire::actor_message>(random)) {
    if (auto* letter = std::get_if<mail::meeting_message>(&what)) {
      for (auto& content : each_of<mail::meeting_message::content>(random)) {
        letter->body = std::move(content);
        if (auto* const part = std::get_if<collective_message>(&letter->body))
          part->bytes = letter->bytes; // which travels once
        if (travels(*letter))
          result.push_back(addressed(*letter, random));
      }
    } else {
      dice apart{6};
      const bool is_new = is_new_kind(what);
      result.push_back(addressed(std::move(what), is_new ? apart : random));
    }
  }
  return result;
}

} // namespace some_mail
