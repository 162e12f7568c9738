// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/wire/meeting_messages.hpp"

#include <stdexcept>

namespace troupe::wire {

namespace {

using wire_traffic = schema::Letter::Traffic;

[[noreturn]] void refuse_to_send(const char* name) {
  throw std::logic_error{std::string{name} + " never leaves its rank"};
}

struct content_writer {
  schema::Letter::Builder to;

  void operator()(const collective_message& from) {
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

  void operator()(const mail::rows_to_expert& from) {
    if (from.loan)
      refuse_to_send("rows_to_expert with a loan");
    auto m = to.initRowsToExpert();
    write(m.initWhat(), from.action);
    m.setSource(from.source);
    m.setRows(from.rows);
  }

  void operator()(const mail::rows_from_expert& from) {
    to.initRowsFromExpert().setExpert(from.expert);
  }

  void operator()(const mail::norm_part& from) {
    auto m = to.initNormPart();
    write(m.initOf(), from.sender);
    m.setSamples(from.samples);
    write_numbers(m.initSquares(length(from.squares)), from.squares);
    m.setUpdate(from.update);
  }

  void operator()(const mail::clip_by& from) {
    auto m = to.initClipBy();
    m.setFactor(from.factor);
    m.setUpdate(from.update);
  }

  void operator()(const mail::tied_part& from) {
    auto m = to.initTiedPart();
    m.setUpdate(from.update);
    write(m.initOf(), from.sender);
    m.setToHead(from.to_head);
    m.setFirst(from.first);
    m.setValues(from.values);
  }

  void operator()(const mail::bucket_ready&) { refuse_to_send("bucket_ready"); }
  void operator()(const mail::update_request&) { refuse_to_send("update_request"); }
  void operator()(const mail::updated&) { refuse_to_send("updated"); }
  void operator()(const mail::version_there&) { refuse_to_send("version_there"); }
  void operator()(const mail::push&) { refuse_to_send("push"); }
  void operator()(const mail::pulled&) { refuse_to_send("pulled"); }
  void operator()(const mail::sum_over&) { refuse_to_send("sum_over"); }
  void operator()(const mail::user_message&) { refuse_to_send("user_message"); }
};

collective_message read(schema::Collective::Reader from) {
  return {.instance = natural(from.getInstance(), "a collective"),
          .round = natural(from.getRound(), "a round"),
          .from = natural(from.getFrom(), "a rank"),
          .to = natural(from.getTo(), "a rank"),
          .range = {.first = natural(from.getFirst(), "a chunk"),
                    .count = natural(from.getCount(), "chunks")},
          .values = within(from.getValues(), 0, most_values, "values"),
          .payload = {},
          .call = read_call(from.getCall())};
}

mail::tied_part read(schema::TiedPart::Reader from) {
  return {.update = natural(from.getUpdate(), "an update"),
          .sender = wire::read(from.getOf()),
          .to_head = from.getToHead(),
          .first = within(from.getFirst(), 0, most_values, "a first value"),
          .values = within(from.getValues(), 0, most_values, "values")};
}

mail::meeting_message::content content_of(schema::Letter::Reader from,
                                          read_budget& left) {
  switch (from.which()) {
  case schema::Letter::COLLECTIVE:
    return read(from.getCollective());
  case schema::Letter::ROWS_TO_EXPERT: {
    const auto m = from.getRowsToExpert();
    return mail::rows_to_expert{.action = wire::read(m.getWhat()),
                                .source = natural(m.getSource(), "a source of rows"),
                                .rows = within(m.getRows(), 0, most_values, "rows")};
  }
  case schema::Letter::ROWS_FROM_EXPERT:
    return mail::rows_from_expert{
      .expert = natural(from.getRowsFromExpert().getExpert(), "an expert")};
  case schema::Letter::NORM_PART: {
    const auto m = from.getNormPart();
    return mail::norm_part{.sender = wire::read(m.getOf()),
                           .samples = natural(m.getSamples(), "samples"),
                           .squares = read_numbers<double>(m.getSquares(), left),
                           .update = natural(m.getUpdate(), "an update")};
  }
  case schema::Letter::CLIP_BY:
    return mail::clip_by{from.getClipBy().getFactor(),
                         natural(from.getClipBy().getUpdate(), "an update")};
  case schema::Letter::TIED_PART:
    return read(from.getTiedPart());
  }
  throw bad_bytes{"a message within a group of actors is of an unknown kind"};
}

} // namespace

void write(schema::Letter::Builder to, const mail::meeting_message& from) {
  write(to.initTo(), from.to);
  to.setAbout(to_schema<schema::Letter::MeetingKind>(from.meeting));
  if (from.kind)
    to.setKind(static_cast<wire_traffic>(static_cast<int>(*from.kind) + 1));
  to.setBytes(from.bytes);
  std::visit(content_writer{to}, from.body);
}

mail::meeting_message read(schema::Letter::Reader from, read_budget& left) {
  const auto kind = known(from.getKind(), wire_traffic::TIED, "a kind of traffic");
  mail::meeting_message result{
    .to = read(from.getTo()),
    .meeting = known(from.getAbout(), meeting_kind::servers, "a meeting"),
    .body = content_of(from, left),
    .bytes = natural(from.getBytes(), "bytes of a meeting message")};
  if (kind != wire_traffic::NONE)
    result.kind = static_cast<traffic>(static_cast<int>(kind) - 1);
  if (auto* const part = std::get_if<collective_message>(&result.body))
    part->bytes = result.bytes; // sent once
  return result;
}

} // namespace troupe::wire
