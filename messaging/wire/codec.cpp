// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/wire/codec.hpp"

#include "messaging/wire/control_messages.hpp"
#include "messaging/wire/fields.hpp"
#include "messaging/wire/meeting_messages.hpp"
#include "messaging/wire/reports.hpp"
#include "messaging/wire/tensor_messages.hpp"
#include "messaging/wire/words.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace troupe::wire {

namespace {

void write(schema::Address::Builder to, const address& from) {
  to.setKind(to_schema<schema::Address::Kind>(from.actor));
  wire::write(to.initWhere(), from.where);
  to.setNumber(from.number);
}

address read(schema::Address::Reader from) {
  return {.actor =
            known(from.getKind(), address::kind::data_source, "a kind of address"),
          .where = wire::read(from.getWhere()),
          .number = natural(from.getNumber(), "the number of an address")};
}

/// The codecs of all alternatives of actor_message.
using actor_codec =
  joined_codec<tensor_codec, meeting_codec, control_codec, report_codec>;

template <class Message>
concept has_tensors = requires(Message& m, void (*visit)()) {
  actor_codec::tensors(m, visit);
};

/// Calls `visit` with each buffer of a message that leaves the process, and then with
/// each array.
void visit_tensors(auto& message, auto visit) {
  const auto visit_each = [&visit](auto& field) {
    if constexpr (requires { field.front(); })
      std::ranges::for_each(field, visit);
    else
      visit(field);
  };
  const auto visit_fields = [&visit_each]<class Message>(Message& m) {
    if constexpr (has_tensors<Message>)
      actor_codec::tensors(m, visit_each);
  };
  std::visit(visit_fields, message);
}

/// Pointers to the tensors of one type, in a message that the caller may change.
template <class Wanted>
std::vector<Wanted*> pointers(actor_message& message) {
  std::vector<Wanted*> result;
  visit_tensors(message, [&result](auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), Wanted&>)
      result.push_back(&tensor);
  });
  return result;
}

std::int64_t tensor_bytes(std::int64_t n) {
  if (within(n, 0, most_bytes, "the bytes of a tensor") % 4 != 0)
    throw bad_bytes{"the bytes of a tensor are " + std::to_string(n)
                    + ", and must be a multiple of 4"};
  return n;
}

addressed_message addressed_message_of(reader from, read_budget& left) {
  using kinds = std::make_index_sequence<std::variant_size_v<actor_message>>;
  addressed_message result{.to = read(from.getTo()),
                           .message = read_alternative<actor_message, actor_codec>(
                             from, left, kinds{}, "a message is of an unknown kind"),
                           .tensors = read_list(from.getTensors(), left, tensor_bytes)};
  if (const auto count = tensor_count(result.message); count != result.tensors.size())
    throw bad_bytes{"a message has " + std::to_string(count)
                    + " tensors, and the number of sizes is "
                    + std::to_string(result.tensors.size())};
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
  visit_tensors(message, [&result](const auto&) { ++result; });
  return result;
}

bool may_have_tensors(const actor_message& message) {
  const auto may_have = []<class Message>(const Message& m) {
    if constexpr (requires { m.header; })
      return !m.header.is_call();
    else if constexpr (requires { actor_codec::may_have_tensors(m); })
      return actor_codec::may_have_tensors(m);
    else
      return has_tensors<Message>;
  };
  return std::visit(may_have, message);
}

bytes encode(const addressed_message& addressed) {
  if (tensor_count(addressed.message) != addressed.tensors.size())
    throw std::logic_error{"a message with the sizes of "
                           + std::to_string(addressed.tensors.size()) + " tensors has "
                           + std::to_string(tensor_count(addressed.message))};
  outgoing message;
  auto root = message.root<schema::ActorMail>();
  write(root.initTo(), addressed.to);
  write_numbers(root.initTensors(length(addressed.tensors)), addressed.tensors);
  std::visit([root](const auto& m) { actor_codec::write(root, m); }, addressed.message);
  return message.to_bytes();
}

tl::expected<addressed_message, std::string>
decode_actor_message(std::span<const unsigned char> from) {
  return read_message<schema::ActorMail>(from, addressed_message_of);
}

} // namespace troupe::wire
