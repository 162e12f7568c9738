// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/wire/reports.hpp"

#include <limits>

namespace troupe::wire {

namespace {

constexpr int all_part_ends = shards_meet | layer_ends | norm_measured
                              | troupe::version_made | experts_asked | tie_given;

void write(schema::MeasuredAction::Builder to, const measured_action& from) {
  to.setOp(to_schema<schema::Op>(from.action.op));
  to.setPart(from.part);
  to.setEndsIn(from.ends_in);
  to.setDirection(from.action.direction);
  to.setStage(from.action.stage);
  to.setMicrobatch(from.action.microbatch);
  to.setStart(from.start);
  to.setEnd(from.end);
  to.setVersion(from.version);
  to.setVersionsAlive(from.versions_alive);
  to.setGradients(from.gradients);
  to.setStalest(from.stalest);
  to.setStaleness(from.staleness);
  to.setExpert(from.expert);
  to.setFirstOfPair(from.action.pair == in_pair::first);
  to.setSecondOfPair(from.action.pair == in_pair::second);
}

measured_action read(schema::MeasuredAction::Reader from) {
  return {.action = {.op = known(from.getOp(), op::recompute, "an op"),
                     .direction = natural(from.getDirection(), "a direction"),
                     .stage = natural(from.getStage(), "a stage"),
                     .microbatch = natural(from.getMicrobatch(), "a microbatch"),
                     .pair = from.getFirstOfPair()    ? in_pair::first
                             : from.getSecondOfPair() ? in_pair::second
                                                      : in_pair::no},
          .start = read_time(from.getStart()),
          .end = read_time(from.getEnd()),
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

rank_sums::stage_sums read(schema::Sums::Stage::Reader from) {
  return {.stage = natural(from.getStage(), "a stage"),
          .versions = natural(from.getVersions(), "versions"),
          .stalest = natural(from.getStalest(), "a staleness"),
          .staleness = natural(from.getStaleness(), "a sum of staleness"),
          .gradients = natural(from.getGradients(), "gradients")};
}

} // namespace

void write(schema::Samples::Builder to, const mail::samples& from) {
  to.setRank(from.rank);
  auto list = to.initWhat(length(from.actions));
  for (unsigned i = 0; i < list.size(); ++i)
    write(list[i], from.actions[i]);
}

mail::samples read(schema::Samples::Reader from, read_budget& left) {
  return {.rank = natural(from.getRank(), "a rank"),
          .actions =
            read_list(from.getWhat(), left,
                      [](schema::MeasuredAction::Reader m) { return read(m); })};
}

void write(schema::Sums::Builder to, const mail::sums& from) {
  to.setRank(from.rank);
  to.setBusy(from.totals.busy);
  to.setFirstStart(from.totals.first_start);
  to.setLastEnd(from.totals.last_end);
  to.setHeld(from.totals.held);
  to.setPeakHeld(from.totals.peak_held);
  auto stages = to.initStages(length(from.totals.stages));
  for (unsigned i = 0; i < stages.size(); ++i) {
    const auto& s = from.totals.stages[i];
    stages[i].setStage(s.stage);
    stages[i].setVersions(s.versions);
    stages[i].setStalest(s.stalest);
    stages[i].setStaleness(s.staleness);
    stages[i].setGradients(s.gradients);
  }
}

mail::sums read(schema::Sums::Reader from, read_budget& left) {
  mail::sums result{.rank = natural(from.getRank(), "a rank"), .totals = {}};
  result.totals.busy = read_time(from.getBusy());
  result.totals.first_start = read_time(from.getFirstStart());
  result.totals.last_end = read_time(from.getLastEnd());
  result.totals.held = static_cast<int>(
    within(from.getHeld(), -most_of<int>, most_of<int>, "microbatches that are held"));
  result.totals.peak_held =
    natural(from.getPeakHeld(), "a number of microbatches that are held");
  result.totals.stages = read_list(
    from.getStages(), left, [](schema::Sums::Stage::Reader s) { return read(s); });
  return result;
}

void write(schema::MicrobatchLoss::Builder to, const mail::microbatch_loss& from) {
  to.setMicrobatch(from.microbatch);
  to.setSamples(from.samples);
  to.setLoss(from.sum.loss);
  to.setCorrect(from.sum.correct);
  to.setEnded(from.ended);
}

mail::microbatch_loss read(schema::MicrobatchLoss::Reader from) {
  return {.microbatch = natural(from.getMicrobatch(), "a microbatch"),
          .samples = natural(from.getSamples(), "samples"),
          .sum = {.loss = from.getLoss(),
                  .correct = natural(from.getCorrect(), "correct rows")},
          .ended = read_time(from.getEnded())};
}

void write(schema::VersionMade::Builder to, const mail::version_made& from) {
  write(to.initWhere(), from.where);
  to.setVersion(from.version);
  to.setParameters(length(from.parameters));
  to.setGradients(length(from.gradients));
}

mail::version_made read(schema::VersionMade::Reader from, read_budget& left) {
  return {.where = read(from.getWhere()),
          .version = read_version(from.getVersion()),
          .parameters = read_count<std::vector<float>>(from.getParameters(), left),
          .gradients = read_count<std::vector<float>>(from.getGradients(), left)};
}

void write(schema::ExpertLoad::Builder to, const mail::expert_load& from) {
  to.setMicrobatch(from.microbatch);
  to.setOfLayer(from.of_layer);
  write_numbers(to.initRows(length(from.rows)), from.rows);
  to.setDropped(from.dropped);
}

mail::expert_load read(schema::ExpertLoad::Reader from, read_budget& left) {
  // Bounds the layer's number: layers are few, and the recorder stores loads by number.
  if (from.getOfLayer() > std::numeric_limits<std::uint32_t>::max())
    throw bad_bytes{"a layer is " + std::to_string(from.getOfLayer())};
  return {.microbatch = natural(from.getMicrobatch(), "a microbatch"),
          .of_layer = from.getOfLayer(),
          .rows = read_naturals<std::int64_t>(from.getRows(), left, "rows"),
          .dropped = natural(from.getDropped(), "dropped rows")};
}

void write(schema::Snapshot::Builder to, const mail::snapshot& from) {
  to.setBatches(from.batches);
  write(to.initWhere(), from.where);
  to.setParameters(length(from.parameters));
}

mail::snapshot read(schema::Snapshot::Reader from, read_budget& left) {
  return {.batches = natural(from.getBatches(), "batches"),
          .where = read(from.getWhere()),
          .parameters = read_count<buffer>(from.getParameters(), left)};
}

void write(schema::Collected::Builder to, const mail::collected& from) {
  write(to.initWhere(), from.where);
  to.setUpdates(from.updates);
  to.setSamples(from.samples);
  to.setParameters(length(from.parameters));
  to.setGradients(length(from.gradients));
}

mail::collected read(schema::Collected::Reader from, read_budget& left) {
  return {.where = read(from.getWhere()),
          .updates = natural(from.getUpdates(), "updates"),
          .samples = natural(from.getSamples(), "samples"),
          .parameters = read_count<buffer>(from.getParameters(), left),
          .gradients = read_count<buffer>(from.getGradients(), left)};
}

void write(schema::Copied::Builder to, const mail::copied& from) {
  to.setBatches(from.batches);
  write(to.initWhere(), from.where);
}

mail::copied read(schema::Copied::Reader from) {
  return {.batches = natural(from.getBatches(), "batches"),
          .where = read(from.getWhere())};
}

void write(schema::Saved::Builder to, const mail::saved& from) {
  to.setBatches(from.batches);
  write(to.initWhere(), from.where);
  to.setUpdates(from.updates);
  write_numbers(to.initAges(length(from.ages)), from.ages);
  to.setState(length(from.state));
}

mail::saved read(schema::Saved::Reader from, read_budget& left) {
  mail::saved result{.batches = natural(from.getBatches(), "batches"),
                     .where = read(from.getWhere()),
                     .updates = natural(from.getUpdates(), "updates"),
                     .ages = read_list(from.getAges(), left, [](std::int32_t n) {
                       return natural(n, "the age of a version");
                     })};
  result.versions = read_count<buffer>(length(result.ages), left);
  result.state = read_count<buffer>(from.getState(), left);
  return result;
}

} // namespace troupe::wire
