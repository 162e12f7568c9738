// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/reports.hpp"
#include "messaging/wire/alternatives.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace troupe::wire {

inline constexpr int all_part_ends = shards_meet | layer_ends | norm_measured
                                     | troupe::version_made | experts_asked | tie_given;

inline void write(schema::MeasuredAction::Builder to, const measured_action& from) {
  to.setOp(to_schema<schema::Op>(from.action.op));
  to.setPart(from.part);
  to.setEndsIn(from.ends_in);
  to.setDirection(from.action.direction);
  to.setStage(from.action.stage);
  to.setMicrobatch(from.action.microbatch);
  to.setStart(from.start);
  to.setEnd(from.end);
  to.setOffProcessorTime(from.off_processor_time);
  to.setVersion(from.version);
  to.setVersionsAlive(from.versions_alive);
  to.setGradients(from.gradients);
  to.setStalest(from.stalest);
  to.setStaleness(from.staleness);
  to.setExpert(from.expert);
  to.setFirstOfPair(from.action.pair == in_pair::first);
  to.setSecondOfPair(from.action.pair == in_pair::second);
}

inline measured_action read(schema::MeasuredAction::Reader from) {
  return {.action = {.op = known(from.getOp(), op::recompute, "an op"),
                     .direction = natural(from.getDirection(), "a direction"),
                     .stage = natural(from.getStage(), "a stage"),
                     .microbatch = natural(from.getMicrobatch(), "a microbatch"),
                     .pair = from.getFirstOfPair()    ? in_pair::first
                             : from.getSecondOfPair() ? in_pair::second
                                                      : in_pair::no},
          .start = read_time(from.getStart()),
          .end = read_time(from.getEnd()),
          .off_processor_time =
            natural(from.getOffProcessorTime(), "a time without a processor"),
          .version = read_version(from.getVersion()),
          .versions_alive = natural(from.getVersionsAlive(), "versions"),
          .part = from.getPart(),
          .gradients = natural(from.getGradients(), "gradients"),
          .stalest = natural(from.getStalest(), "a staleness"),
          .staleness = natural(from.getStaleness(), "a sum of staleness"),
          .expert = expert_or_none(from.getExpert()),
          .ends_in = static_cast<std::uint8_t>(
            within(from.getEndsIn(), 0, all_part_ends, "a set of meetings"))};
}

inline void write(schema::Sums::Stage::Builder to, const rank_sums::stage_sums& from) {
  to.setStage(from.stage);
  to.setVersions(from.versions);
  to.setStalest(from.stalest);
  to.setStaleness(from.staleness);
  to.setGradients(from.gradients);
}

inline rank_sums::stage_sums read(schema::Sums::Stage::Reader from) {
  return {.stage = natural(from.getStage(), "a stage"),
          .versions = natural(from.getVersions(), "versions"),
          .stalest = natural(from.getStalest(), "a staleness"),
          .staleness = natural(from.getStaleness(), "a sum of staleness"),
          .gradients = natural(from.getGradients(), "gradients")};
}

/// Encodes messages to the recorder (alternatives.hpp).
struct report_codec {
  using enum schema::ActorMail::Which;

  static void write(builder to, const mail::samples& m) {
    auto s = to.initSamples();
    s.setRank(m.rank);
    auto list = s.initWhat(length(m.actions));
    for (unsigned i = 0; i < list.size(); ++i)
      wire::write(list[i], m.actions[i]);
  }
  static mail::samples read(alternative<SAMPLES>, reader from, read_budget& left) {
    const auto s = from.getSamples();
    return {.rank = natural(s.getRank(), "a rank"),
            .actions =
              read_list(s.getWhat(), left, [](schema::MeasuredAction::Reader action) {
                return wire::read(action);
              })};
  }

  static void write(builder to, const mail::sums& m) {
    auto s = to.initSums();
    s.setRank(m.rank);
    s.setBusy(m.totals.busy);
    s.setOffProcessorTime(m.totals.off_processor_time);
    s.setFirstStart(m.totals.first_start);
    s.setLastEnd(m.totals.last_end);
    s.setHeld(m.totals.held);
    s.setPeakHeld(m.totals.peak_held);
    auto stages = s.initStages(length(m.totals.stages));
    for (unsigned i = 0; i < stages.size(); ++i)
      wire::write(stages[i], m.totals.stages[i]);
  }
  static mail::sums read(alternative<SUMS>, reader from, read_budget& left) {
    const auto s = from.getSums();
    mail::sums result{.rank = natural(s.getRank(), "a rank"), .totals = {}};
    result.totals.busy = read_time(s.getBusy());
    result.totals.off_processor_time =
      natural(s.getOffProcessorTime(), "a time without a processor");
    result.totals.first_start = read_time(s.getFirstStart());
    result.totals.last_end = read_time(s.getLastEnd());
    result.totals.held = static_cast<int>(
      within(s.getHeld(), -most_of<int>, most_of<int>, "microbatches that are held"));
    result.totals.peak_held =
      natural(s.getPeakHeld(), "a number of microbatches that are held");
    result.totals.stages =
      read_list(s.getStages(), left,
                [](schema::Sums::Stage::Reader stage) { return wire::read(stage); });
    return result;
  }

  static void write(builder to, const mail::microbatch_loss& m) {
    auto s = to.initMicrobatchLoss();
    s.setMicrobatch(m.microbatch);
    s.setSamples(m.samples);
    s.setLoss(m.sum.loss);
    s.setCorrect(m.sum.correct);
    s.setEnded(m.ended);
  }
  static mail::microbatch_loss read(alternative<MICROBATCH_LOSS>, reader from) {
    const auto s = from.getMicrobatchLoss();
    return {
      .microbatch = natural(s.getMicrobatch(), "a microbatch"),
      .samples = natural(s.getSamples(), "samples"),
      .sum = {.loss = s.getLoss(), .correct = natural(s.getCorrect(), "correct rows")},
      .ended = read_time(s.getEnded())};
  }

  static void write(builder to, const mail::update_part& m) {
    auto s = to.initUpdatePart();
    wire::write(s.initWhere(), m.where);
    s.setVersion(m.version);
    s.setSamples(m.samples);
    s.setSquares(m.squares);
    s.setRate(m.rate);
  }
  static mail::update_part read(alternative<UPDATE_PART>, reader from) {
    const auto s = from.getUpdatePart();
    return {.where = wire::read(s.getWhere()),
            .version = read_version(s.getVersion()),
            .samples = natural(s.getSamples(), "samples"),
            .squares = s.getSquares(),
            .rate = s.getRate()};
  }

  static void write(builder to, const mail::version_made& m) {
    auto s = to.initVersionMade();
    wire::write(s.initWhere(), m.where);
    s.setVersion(m.version);
    s.setParameters(length(m.parameters));
    s.setGradients(length(m.gradients));
  }
  static mail::version_made read(alternative<VERSION_MADE>, reader from,
                                 read_budget& left) {
    const auto s = from.getVersionMade();
    return {.where = wire::read(s.getWhere()),
            .version = read_version(s.getVersion()),
            .parameters = read_count<std::vector<float>>(s.getParameters(), left),
            .gradients = read_count<std::vector<float>>(s.getGradients(), left)};
  }
  static void tensors(maybe_const<mail::version_made> auto& m, auto visit) {
    visit(m.parameters);
    visit(m.gradients);
  }

  static void write(builder to, const mail::expert_load& m) {
    auto s = to.initExpertLoad();
    s.setMicrobatch(m.microbatch);
    s.setOfLayer(m.of_layer);
    write_numbers(s.initRows(length(m.rows)), m.rows);
    s.setDropped(m.dropped);
  }
  static mail::expert_load read(alternative<EXPERT_LOAD>, reader from,
                                read_budget& left) {
    const auto s = from.getExpertLoad();
    // Bounds the layer's number: layers are few, and the recorder stores loads by
    // number.
    if (s.getOfLayer() > std::numeric_limits<std::uint32_t>::max())
      throw bad_bytes{"a layer is " + std::to_string(s.getOfLayer())};
    return {.microbatch = natural(s.getMicrobatch(), "a microbatch"),
            .of_layer = s.getOfLayer(),
            .rows = read_naturals<std::int64_t>(s.getRows(), left, "rows"),
            .dropped = natural(s.getDropped(), "dropped rows")};
  }
};

} // namespace troupe::wire
