// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/wire/fields.hpp"

#include "messaging/wire/foreign_text.hpp"

namespace troupe::wire {

void refuse_number(std::int64_t n, std::int64_t least, std::int64_t most,
                   const char* name) {
  throw bad_bytes{std::string{name} + " is " + std::to_string(n) + ", and must be from "
                  + std::to_string(least) + " to " + std::to_string(most)};
}

capnp::Text::Reader as_text(const std::string& from) {
  return {from.c_str(), from.size()};
}

std::string read_exactly(capnp::Text::Reader from, read_budget& left) {
  left.spend(from.size(), 1);
  return {from.begin(), from.size()};
}

std::string read(capnp::Text::Reader from, read_budget& left) {
  return foreign_text(read_exactly(from, left), line_breaks::escaped);
}

std::string read_lines(capnp::Text::Reader from, read_budget& left) {
  return foreign_text(read_exactly(from, left), line_breaks::kept);
}

void write(schema::Position::Builder to, const position& from) {
  to.setData(from.data);
  to.setDirection(from.direction);
  to.setStage(from.stage);
  to.setTensor(from.tensor);
}

position read(schema::Position::Reader from) {
  return {.data = natural(from.getData(), "a data replica"),
          .direction = natural(from.getDirection(), "a direction"),
          .stage = natural(from.getStage(), "a stage"),
          .tensor = natural(from.getTensor(), "a tensor shard")};
}

void write(schema::Performer::Builder to, const performer& from) {
  to.setRole(to_schema<schema::Performer::Role>(from.kind));
  write(to.initWhere(), from.where);
  to.setExpert(from.expert);
}

performer read(schema::Performer::Reader from) {
  return {.kind = known(from.getRole(), role::parameter_server, "a role"),
          .where = read(from.getWhere()),
          .expert = expert_or_none(from.getExpert())};
}

void write(schema::Action::Builder to, const action& from) {
  to.setOp(to_schema<schema::Op>(from.op));
  to.setDirection(from.direction);
  to.setStage(from.stage);
  to.setMicrobatch(from.microbatch);
  to.setPair(static_cast<std::uint8_t>(from.pair));
}

action read(schema::Action::Reader from) {
  return {.op = known(from.getOp(), op::recompute, "an op"),
          .direction = natural(from.getDirection(), "a direction"),
          .stage = natural(from.getStage(), "a stage"),
          .microbatch = natural(from.getMicrobatch(), "a microbatch"),
          .pair = static_cast<in_pair>(within(from.getPair(), 0, 2, "a pair"))};
}

void write(schema::TensorHeader::Builder to, const tensor_header& from) {
  to.setStep(from.step);
  to.setMicrobatch(from.microbatch);
  to.setPipeline(from.pipeline);
  to.setStage(from.stage);
  to.setSamples(from.samples);
  to.setValues(from.values);
  to.setVersion(from.version);
  to.setCall(from.call);
}

tensor_header read(schema::TensorHeader::Reader from) {
  const auto samples = within(from.getSamples(), 0, most_values, "samples");
  const auto most_each = samples > 0 ? most_values / samples : most_values;
  return {.step = natural(from.getStep(), "a step"),
          .microbatch = natural(from.getMicrobatch(), "a microbatch"),
          .pipeline = natural(from.getPipeline(), "a pipeline"),
          .stage = natural(from.getStage(), "a stage"),
          .samples = samples,
          .values = within(from.getValues(), 0, most_each, "values of a sample"),
          .version = read_version(from.getVersion()),
          .call = read_call(from.getCall())};
}

} // namespace troupe::wire
