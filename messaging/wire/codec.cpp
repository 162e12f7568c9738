// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/wire/codec.hpp"

#include "messaging/wire/fields.hpp"
#include "messaging/wire/meeting_messages.hpp"
#include "messaging/wire/reports.hpp"
#include "messaging/wire/words.hpp"

#include <stdexcept>

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

/// Throws for a tensor that a GPU may still write: the tensor must not leave the
/// process.
template <class Message>
void refuse_what_is_not_made(const Message& m) {
  if (m.pending_write && !m.header.is_call())
    throw std::logic_error{"a tensor is sent to another process before it is made"};
}

struct message_writer {
  schema::ActorMail::Builder to;

  void operator()(const activation& m) {
    refuse_what_is_not_made(m);
    wire::write(to.initActivation(), m.header);
  }
  void operator()(const labels& m) { wire::write(to.initLabels(), m.header); }
  void operator()(const gradient& m) {
    refuse_what_is_not_made(m);
    wire::write(to.initGradient(), m.header);
  }
  void operator()(const mail::meeting_message& m) { wire::write(to.initLetter(), m); }
  void operator()(const mail::explain&) { to.setExplain(); }
  void operator()(const mail::hold& m) { to.initHold().setRound(m.round); }
  void operator()(const mail::resume_from_checkpoint&) { to.setGoOn(); }
  void operator()(const mail::stop&) { to.setStop(); }
  void operator()(const mail::collect&) { to.setCollect(); }
  void operator()(const mail::copied& m) { wire::write(to.initCopied(), m); }
  void operator()(const mail::saved& m) { wire::write(to.initSaved(), m); }
  void operator()(const mail::fetch_kept_state& m) {
    wire::write(to.initRecall(), mail::copied{m.batches, m.where});
  }
  void operator()(const mail::kept_state& m) {
    wire::write(to.initRecalled(), m.copies);
  }
  void operator()(const mail::snapshot& m) { wire::write(to.initSnapshot(), m); }
  void operator()(const mail::collected& m) { wire::write(to.initCollected(), m); }
  void operator()(const mail::samples& m) { wire::write(to.initSamples(), m); }
  void operator()(const mail::sums& m) { wire::write(to.initSums(), m); }
  void operator()(const mail::version_made& m) { wire::write(to.initVersionMade(), m); }
  void operator()(const mail::expert_load& m) { wire::write(to.initExpertLoad(), m); }

  void operator()(const mail::microbatch_loss& m) {
    wire::write(to.initMicrobatchLoss(), m);
  }

  void operator()(const mail::resume& m) { to.initProceed().setEvaluated(m.evaluated); }
  void operator()(const mail::stop_after& m) { to.initStopAfter().setCount(m.count); }
  void operator()(const mail::finished& m) { to.initFinished().setRank(m.rank); }
  void operator()(const mail::held& m) {
    auto g = to.initHeld();
    g.setRank(m.rank);
    g.setRound(m.round);
  }

  void operator()(const mail::started& m) {
    auto g = to.initBegun();
    g.setRank(m.rank);
    g.setCount(m.count);
  }

  void operator()(const mail::at_checkpoint& m) {
    auto g = to.initAtCheckpoint();
    g.setRank(m.rank);
    g.setBatches(m.batches);
  }

  void operator()(const mail::save& m) {
    auto g = to.initSave();
    g.setBatches(m.batches);
    g.setHandOver(m.hand_over);
    g.setKeep(m.keep);
  }

  void operator()(const mail::waiting_for& m) {
    auto g = to.initWaitingFor();
    g.setWho(as_text(m.actor));
    g.setWhat(as_text(m.input));
    g.setOn(as_text(m.peer));
    g.setOwn(as_text(m.user_code));
  }

  void operator()(const mail::failed& m) { to.initFailed().setWhy(as_text(m.why)); }
};

actor_message message_of(schema::ActorMail::Reader from, read_budget& left) {
  using is = schema::ActorMail;
  switch (from.which()) {
  case is::ACTIVATION:
    return activation{.header = wire::read(from.getActivation())};
  case is::LABELS:
    return labels{.header = wire::read(from.getLabels())};
  case is::GRADIENT:
    return gradient{.header = wire::read(from.getGradient())};
  case is::LETTER:
    return wire::read(from.getLetter(), left);
  case is::EXPLAIN:
    return mail::explain{};
  case is::HOLD:
    return mail::hold{natural(from.getHold().getRound(), "a round")};
  case is::GO_ON:
    return mail::resume_from_checkpoint{};
  case is::STOP:
    return mail::stop{};
  case is::PROCEED:
    return mail::resume{natural(from.getProceed().getEvaluated(), "batches")};
  case is::STOP_AFTER:
    return mail::stop_after{natural(from.getStopAfter().getCount(), "updates")};
  case is::FINISHED:
    return mail::finished{natural(from.getFinished().getRank(), "a rank")};
  case is::HELD:
    return mail::held{natural(from.getHeld().getRank(), "a rank"),
                      natural(from.getHeld().getRound(), "a round")};
  case is::BEGUN:
    return mail::started{natural(from.getBegun().getRank(), "a rank"),
                         natural(from.getBegun().getCount(), "updates")};
  case is::AT_CHECKPOINT:
    return mail::at_checkpoint{natural(from.getAtCheckpoint().getRank(), "a rank"),
                               natural(from.getAtCheckpoint().getBatches(), "batches")};
  case is::COLLECT:
    return mail::collect{};
  case is::SNAPSHOT:
    return wire::read(from.getSnapshot(), left);
  case is::COLLECTED:
    return wire::read(from.getCollected(), left);
  case is::SAVE:
    return mail::save{natural(from.getSave().getBatches(), "batches"),
                      from.getSave().getHandOver(), from.getSave().getKeep()};
  case is::COPIED:
    return wire::read(from.getCopied());
  case is::SAVED:
    return wire::read(from.getSaved(), left);
  case is::RECALL: {
    const auto m = wire::read(from.getRecall());
    return mail::fetch_kept_state{m.batches, m.where};
  }
  case is::RECALLED:
    return mail::kept_state{wire::read(from.getRecalled(), left)};
  case is::WAITING_FOR: {
    const auto m = from.getWaitingFor();
    return mail::waiting_for{wire::read(m.getWho(), left),
                             wire::read(m.getWhat(), left), wire::read(m.getOn(), left),
                             wire::read(m.getOwn(), left)};
  }
  case is::SAMPLES:
    return wire::read(from.getSamples(), left);
  case is::SUMS:
    return wire::read(from.getSums(), left);
  case is::MICROBATCH_LOSS:
    return wire::read(from.getMicrobatchLoss());
  case is::VERSION_MADE:
    return wire::read(from.getVersionMade(), left);
  case is::EXPERT_LOAD:
    return wire::read(from.getExpertLoad(), left);
  case is::FAILED:
    return mail::failed{read_lines(from.getFailed().getWhy(), left)};
  }
  throw bad_bytes{"a message is of an unknown kind"};
}

std::int64_t tensor_bytes(std::int64_t n) {
  if (within(n, 0, most_bytes, "the bytes of a tensor") % 4 != 0)
    throw bad_bytes{"the bytes of a tensor are " + std::to_string(n)
                    + ", and must be a multiple of 4"};
  return n;
}

addressed_message addressed_message_of(schema::ActorMail::Reader from,
                                       read_budget& left) {
  addressed_message result{.to = read(from.getTo()),
                           .message = message_of(from, left),
                           .tensors = read_list(from.getTensors(), left, tensor_bytes)};
  if (const auto count = tensor_count(result.message); count != result.tensors.size())
    throw bad_bytes{"a message has " + std::to_string(count)
                    + " tensors, and the number of sizes is "
                    + std::to_string(result.tensors.size())};
  return result;
}

} // namespace

bytes encode(const addressed_message& addressed) {
  if (tensor_count(addressed.message) != addressed.tensors.size())
    throw std::logic_error{"a message with the sizes of "
                           + std::to_string(addressed.tensors.size()) + " tensors has "
                           + std::to_string(tensor_count(addressed.message))};
  outgoing message;
  auto root = message.root<schema::ActorMail>();
  write(root.initTo(), addressed.to);
  write_numbers(root.initTensors(length(addressed.tensors)), addressed.tensors);
  std::visit(message_writer{root}, addressed.message);
  return message.to_bytes();
}

tl::expected<addressed_message, std::string>
decode_actor_message(std::span<const unsigned char> from) {
  return read_message<schema::ActorMail>(from, addressed_message_of);
}

} // namespace troupe::wire
