// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/meeting_messages.hpp"
#include "messaging/mail/message_name.hpp"
#include "messaging/wire/alternatives.hpp"

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace troupe::wire {

/// Encodes the contents of meeting messages that leave a process (alternatives.hpp). A
/// tensor is the member `payload`.
struct content_codec {
  using enum schema::Letter::Which;
  using builder = schema::Letter::Builder;
  using reader = schema::Letter::Reader;

  static void write(builder to, const collective_message& from) {
    auto m = to.initCollective();
    m.setInstance(from.instance);
    m.setRound(from.round);
    m.setFrom(from.from);
    m.setTo(from.to);
    m.setFirst(from.range.first);
    m.setCount(from.range.count);
    m.setValues(from.values);
    m.setCall(from.call);
  }
  static collective_message read(alternative<COLLECTIVE>, reader from) {
    const auto m = from.getCollective();
    return {.instance = natural(m.getInstance(), "a collective"),
            .round = natural(m.getRound(), "a round"),
            .from = natural(m.getFrom(), "a rank"),
            .to = natural(m.getTo(), "a rank"),
            .range = {.first = natural(m.getFirst(), "a chunk"),
                      .count = natural(m.getCount(), "chunks")},
            .values = within(m.getValues(), 0, most_values, "values"),
            .payload = {},
            .call = read_call(m.getCall())};
  }

  static void write(builder to, const mail::rows_to_expert& from) {
    if (from.loan)
      throw std::logic_error{"rows_to_expert with a loan never leaves its rank"};
    auto m = to.initRowsToExpert();
    wire::write(m.initWhat(), from.action);
    m.setSource(from.source);
    m.setRows(from.rows);
  }
  static mail::rows_to_expert read(alternative<ROWS_TO_EXPERT>, reader from) {
    const auto m = from.getRowsToExpert();
    return {.action = wire::read(m.getWhat()),
            .source = natural(m.getSource(), "a source of rows"),
            .rows = within(m.getRows(), 0, most_values, "rows"),
            .payload = {},
            .loan = {}};
  }

  static void write(builder to, const mail::rows_from_expert& from) {
    to.initRowsFromExpert().setExpert(from.expert);
  }
  static mail::rows_from_expert read(alternative<ROWS_FROM_EXPERT>, reader from) {
    return {.expert = natural(from.getRowsFromExpert().getExpert(), "an expert"),
            .payload = {}};
  }

  static void write(builder to, const mail::norm_part& from) {
    auto m = to.initNormPart();
    wire::write(m.initOf(), from.sender);
    m.setSamples(from.samples);
    write_numbers(m.initSquares(length(from.squares)), from.squares);
    m.setUpdate(from.update);
  }
  static mail::norm_part read(alternative<NORM_PART>, reader from, read_budget& left) {
    const auto m = from.getNormPart();
    return {.sender = wire::read(m.getOf()),
            .samples = natural(m.getSamples(), "samples"),
            .squares = read_numbers<double>(m.getSquares(), left),
            .update = natural(m.getUpdate(), "an update")};
  }

  static void write(builder to, const mail::clip_by& from) {
    auto m = to.initClipBy();
    m.setFactor(from.factor);
    m.setUpdate(from.update);
  }
  static mail::clip_by read(alternative<CLIP_BY>, reader from) {
    return {from.getClipBy().getFactor(),
            natural(from.getClipBy().getUpdate(), "an update")};
  }

  static void write(builder to, const mail::tied_part& from) {
    auto m = to.initTiedPart();
    m.setUpdate(from.update);
    wire::write(m.initOf(), from.sender);
    m.setToHead(from.to_head);
    m.setFirst(from.first);
    m.setValues(from.values);
  }
  static mail::tied_part read(alternative<TIED_PART>, reader from) {
    const auto m = from.getTiedPart();
    return {.update = natural(m.getUpdate(), "an update"),
            .sender = wire::read(m.getOf()),
            .to_head = m.getToHead(),
            .first = within(m.getFirst(), 0, most_values, "a first value"),
            .values = within(m.getValues(), 0, most_values, "values"),
            .payload = {}};
  }

  /// One reader per alternative of the schema.
  using kinds = std::make_index_sequence<TIED_PART + 1>;
};

/// Encodes meeting messages (alternatives.hpp).
struct meeting_codec {
  using wire_traffic = schema::Letter::Traffic;

  /// \throws std::logic_error for a message that never leaves the process
  static void write(builder root, const mail::meeting_message& from) {
    auto to = root.initLetter();
    wire::write(to.initTo(), from.to);
    to.setAbout(to_schema<schema::Letter::MeetingKind>(from.meeting));
    if (from.kind)
      to.setKind(static_cast<wire_traffic>(static_cast<int>(*from.kind) + 1));
    to.setBytes(from.bytes);
    const auto write_content = [to]<class Content>(const Content& content) {
      if constexpr (requires { content_codec::write(to, content); })
        content_codec::write(to, content);
      else
        throw std::logic_error{std::string{name_of_message<Content>()}
                               + " never leaves its rank"};
    };
    std::visit(write_content, from.body);
  }

  static mail::meeting_message read(alternative<schema::ActorMail::LETTER>, reader root,
                                    read_budget& left) {
    const auto from = root.getLetter();
    const auto kind = known(from.getKind(), wire_traffic::TIED, "a kind of traffic");
    mail::meeting_message result{
      .to = wire::read(from.getTo()),
      .meeting = known(from.getAbout(), meeting_kind::servers, "a meeting"),
      .body = read_alternative<mail::meeting_message::content, content_codec>(
        from, left, content_codec::kinds{},
        "a message within a group of actors is of an unknown kind"),
      .bytes = natural(from.getBytes(), "bytes of a meeting message")};
    if (kind != wire_traffic::NONE)
      result.kind = static_cast<traffic>(static_cast<int>(kind) - 1);
    if (auto* const part = std::get_if<collective_message>(&result.body))
      part->bytes = result.bytes; // sent once
    return result;
  }

  static void tensors(maybe_const<mail::meeting_message> auto& m, auto visit) {
    const auto visit_payload = [&visit](auto& content) {
      if constexpr (requires { content.payload; })
        visit(content.payload);
    };
    std::visit(visit_payload, m.body);
  }

  static bool may_have_tensors(const mail::meeting_message& m) {
    const auto* const part = std::get_if<collective_message>(&m.body);
    return m.kind.has_value() && !(part != nullptr && part->is_call());
  }
};

} // namespace troupe::wire
