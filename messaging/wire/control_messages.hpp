// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/control.hpp"
#include "messaging/mail/nodes.hpp"
#include "messaging/wire/alternatives.hpp"

namespace troupe::wire {

/// Encodes messages between the coordinator and other actors (alternatives.hpp).
struct control_codec {
  using enum schema::ActorMail::Which;

  static void write(builder to, const mail::explain&) { to.setExplain(); }
  static mail::explain read(alternative<EXPLAIN>, reader) { return {}; }

  static void write(builder to, const mail::hold& m) {
    to.initHold().setRound(m.round);
  }
  static mail::hold read(alternative<HOLD>, reader from) {
    return {natural(from.getHold().getRound(), "a round")};
  }

  static void write(builder to, const mail::held& m) {
    auto g = to.initHeld();
    g.setRank(m.rank);
    g.setRound(m.round);
  }
  static mail::held read(alternative<HELD>, reader from) {
    return {natural(from.getHeld().getRank(), "a rank"),
            natural(from.getHeld().getRound(), "a round")};
  }

  static void write(builder to, const mail::resume& m) {
    to.initProceed().setEvaluated(m.evaluated);
  }
  static mail::resume read(alternative<PROCEED>, reader from) {
    return {natural(from.getProceed().getEvaluated(), "batches")};
  }

  static void write(builder to, const mail::at_checkpoint& m) {
    auto g = to.initAtCheckpoint();
    g.setRank(m.rank);
    g.setBatches(m.batches);
  }
  static mail::at_checkpoint read(alternative<AT_CHECKPOINT>, reader from) {
    return {natural(from.getAtCheckpoint().getRank(), "a rank"),
            natural(from.getAtCheckpoint().getBatches(), "batches")};
  }

  static void write(builder to, const mail::resume_from_checkpoint&) { to.setGoOn(); }
  static mail::resume_from_checkpoint read(alternative<GO_ON>, reader) { return {}; }

  static void write(builder to, const mail::stop&) { to.setStop(); }
  static mail::stop read(alternative<STOP>, reader) { return {}; }

  static void write(builder to, const mail::started& m) {
    auto g = to.initBegun();
    g.setRank(m.rank);
    g.setCount(m.count);
  }
  static mail::started read(alternative<BEGUN>, reader from) {
    return {natural(from.getBegun().getRank(), "a rank"),
            natural(from.getBegun().getCount(), "updates")};
  }

  static void write(builder to, const mail::stop_after& m) {
    to.initStopAfter().setCount(m.count);
  }
  static mail::stop_after read(alternative<STOP_AFTER>, reader from) {
    return {natural(from.getStopAfter().getCount(), "updates")};
  }

  static void write(builder to, const mail::finished& m) {
    to.initFinished().setRank(m.rank);
  }
  static mail::finished read(alternative<FINISHED>, reader from) {
    return {natural(from.getFinished().getRank(), "a rank")};
  }

  static void write(builder to, const mail::snapshot& m) {
    auto s = to.initSnapshot();
    s.setBatches(m.batches);
    wire::write(s.initWhere(), m.where);
    s.setParameters(length(m.parameters));
  }
  static mail::snapshot read(alternative<SNAPSHOT>, reader from, read_budget& left) {
    const auto s = from.getSnapshot();
    return {.batches = natural(s.getBatches(), "batches"),
            .where = wire::read(s.getWhere()),
            .parameters = read_count<buffer>(s.getParameters(), left)};
  }
  static void tensors(maybe_const<mail::snapshot> auto& m, auto visit) {
    visit(m.parameters);
  }

  static void write(builder to, const mail::collect&) { to.setCollect(); }
  static mail::collect read(alternative<COLLECT>, reader) { return {}; }

  static void write(builder to, const mail::collected& m) {
    auto s = to.initCollected();
    wire::write(s.initWhere(), m.where);
    s.setUpdates(m.updates);
    s.setSamples(m.samples);
    s.setParameters(length(m.parameters));
    s.setGradients(length(m.gradients));
  }
  static mail::collected read(alternative<COLLECTED>, reader from, read_budget& left) {
    const auto s = from.getCollected();
    return {.where = wire::read(s.getWhere()),
            .updates = natural(s.getUpdates(), "updates"),
            .samples = natural(s.getSamples(), "samples"),
            .parameters = read_count<buffer>(s.getParameters(), left),
            .gradients = read_count<buffer>(s.getGradients(), left)};
  }
  static void tensors(maybe_const<mail::collected> auto& m, auto visit) {
    visit(m.parameters);
    visit(m.gradients);
  }

  static void write(builder to, const mail::save& m) {
    auto g = to.initSave();
    g.setBatches(m.batches);
    g.setHandOver(m.hand_over);
    g.setKeep(m.keep);
  }
  static mail::save read(alternative<SAVE>, reader from) {
    const auto g = from.getSave();
    return {natural(g.getBatches(), "batches"), g.getHandOver(), g.getKeep()};
  }

  static void write(builder to, const mail::copied& m) {
    write_stage(to.initCopied(), m);
  }
  static mail::copied read(alternative<COPIED>, reader from) {
    return read_stage<mail::copied>(from.getCopied());
  }

  static void write(builder to, const mail::saved& m) {
    write_copies(to.initSaved(), m);
  }
  static mail::saved read(alternative<SAVED>, reader from, read_budget& left) {
    return read_copies(from.getSaved(), left);
  }
  static void tensors(maybe_const<mail::saved> auto& m, auto visit) {
    visit(m.versions);
    visit(m.state);
  }

  static void write(builder to, const mail::fetch_kept_state& m) {
    write_stage(to.initRecall(), m);
  }
  static mail::fetch_kept_state read(alternative<RECALL>, reader from) {
    return read_stage<mail::fetch_kept_state>(from.getRecall());
  }

  static void write(builder to, const mail::kept_state& m) {
    write_copies(to.initRecalled(), m.copies);
  }
  static mail::kept_state read(alternative<RECALLED>, reader from, read_budget& left) {
    return {read_copies(from.getRecalled(), left)};
  }
  static void tensors(maybe_const<mail::kept_state> auto& m, auto visit) {
    tensors(m.copies, visit);
  }

  static void write(builder to, const mail::waiting_for& m) {
    auto s = to.initWaitingFor();
    s.setWho(as_text(m.actor));
    s.setWhat(as_text(m.input));
    s.setOn(as_text(m.peer));
    s.setOwn(as_text(m.user_code));
  }
  static mail::waiting_for read(alternative<WAITING_FOR>, reader from,
                                read_budget& left) {
    const auto s = from.getWaitingFor();
    return {wire::read(s.getWho(), left), wire::read(s.getWhat(), left),
            wire::read(s.getOn(), left), wire::read(s.getOwn(), left)};
  }

  static void write(builder to, const mail::failed& m) {
    to.initFailed().setWhy(as_text(m.why));
  }
  static mail::failed read(alternative<FAILED>, reader from, read_budget& left) {
    return {read_lines(from.getFailed().getWhy(), left)};
  }

private:
  template <class Message>
  static void write_stage(schema::Copied::Builder to, const Message& from) {
    to.setBatches(from.batches);
    wire::write(to.initWhere(), from.where);
  }
  template <class Message>
  static Message read_stage(schema::Copied::Reader from) {
    return {natural(from.getBatches(), "batches"), wire::read(from.getWhere())};
  }

  static void write_copies(schema::Saved::Builder to, const mail::saved& from) {
    to.setBatches(from.batches);
    wire::write(to.initWhere(), from.where);
    to.setUpdates(from.updates);
    write_numbers(to.initAges(length(from.ages)), from.ages);
    to.setState(length(from.state));
  }
  static mail::saved read_copies(schema::Saved::Reader from, read_budget& left) {
    mail::saved result{
      .batches = natural(from.getBatches(), "batches"),
      .where = wire::read(from.getWhere()),
      .updates = natural(from.getUpdates(), "updates"),
      .ages = read_naturals<int>(from.getAges(), left, "the age of a version")};
    result.versions = read_count<buffer>(length(result.ages), left);
    result.state = read_count<buffer>(from.getState(), left);
    return result;
  }
};

} // namespace troupe::wire
