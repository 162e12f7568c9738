// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/trace.hpp"

#include "messaging/held_activations.hpp"
#include "models/utf8.hpp"
#include "plan/stage_experts.hpp"
#include "plan/stage_indexing.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

/// Colours that both viewers know by name.
const char* colour_of(op kind) {
  switch (kind) {
  case op::forward:
    return "thread_state_running"; // green
  case op::backward:
    return "rail_response"; // blue
  case op::input_gradient:
    return "rail_animation"; // violet
  case op::weight_gradient:
    return "rail_idle"; // orange
  case op::update:
    return "terrible"; // red
  case op::recompute:
    return "thread_state_runnable"; // light blue
  }
  return "grey";
}

double microseconds(nanoseconds t) {
  return static_cast<double>(t) / 1000;
}

class tracer {
public:
  tracer(const run_plan& plan, const record& ran, const std::string& title)
    : plan_(plan) {
    add(
      {{"ph", "M"}, {"pid", 0}, {"name", "process_name"}, {"args", {{"name", title}}}});
    for (std::size_t rank = 0; rank < ran.size(); ++rank)
      trace_rank(static_cast<int>(rank), ran[rank]);
    for (const auto& [which, ends] : flows_)
      if (ends.from >= 0 && ends.to >= 0)
        add_flow(which, ends);
  }

  std::string text() && { return std::move(text_) + "\n]}\n"; }

private:
  /// F or B, the replica, the sending stage and the microbatch.
  using message = std::tuple<op, int, int, int>;

  struct flow {
    int from = -1, to = -1; // ranks
    nanoseconds sent = 0, used = 0;
  };

  // Converts an event to text at once: as an object an event takes five times the
  // memory.
  void add(const json& event) {
    text_ += (std::exchange(has_events_, true) ? ",\n" : "\n") + json_text(event);
  }

  void trace_rank(int rank, const std::vector<measured_action>& row) {
    add({{"ph", "M"},
         {"pid", 0},
         {"tid", rank},
         {"name", "thread_name"},
         {"args", {{"name", "rank " + std::to_string(rank)}}}});
    held_activations held;
    auto versions = first_versions(row);
    int alive = 0; // of all stages on this rank
    for (const auto& [stage, number] : versions)
      alive += number;
    if (alive > 0)
      count(rank, "weight versions", 0, alive);
    std::set<std::pair<action, int>> open; // unfinished actions, and their experts
    for (const auto& s : row) {
      add_slice(rank, s);
      const std::pair which{s.action, s.expert};
      if (s.expert < 0)
        note_messages(rank, s, open.contains(which));
      if (s.part)
        open.insert(which);
      else
        open.erase(which);
      if (const auto when = held.add(s))
        count(rank, "activations", *when, held.count());
      if (s.part || s.expert >= 0)
        continue;
      auto& of_stage = versions[{s.action.direction, s.action.stage}];
      if (of_stage != s.versions_alive) {
        alive += s.versions_alive - std::exchange(of_stage, s.versions_alive);
        count(rank, "weight versions", s.end, alive);
      }
    }
  }

  /// The number of versions of each stage on a rank that are alive when the stage's
  /// first action has ended. A resumed run begins with several.
  static std::map<std::pair<int, int>, int>
  first_versions(const std::vector<measured_action>& row) {
    std::map<std::pair<int, int>, int> result; // by direction and stage
    for (const auto& s : row)
      if (!s.part && s.expert < 0)
        result.try_emplace({s.action.direction, s.action.stage}, s.versions_alive);
    return result;
  }

  /// The tensor shards of a replica send messages separately, so each shard is a
  /// pipeline of its own.
  int pipeline_of(int rank, const action& a) const {
    return static_cast<int>(stage_indexing{plan_}.pipeline(
      {plan_.data_of(rank), a.direction, a.stage, plan_.shard_of(rank)}));
  }

  void add_slice(int rank, const measured_action& s) {
    json args{{"stage", s.action.stage},
              {"microbatch", s.action.microbatch},
              {"version", s.version}};
    if (plan_.replicas() > 1)
      args["replica"] = pipeline_of(rank, s.action) / plan_.mesh[axis::tensor];
    if (plan_.mesh[axis::tensor] > 1)
      args["tensor shard"] = rank % plan_.mesh[axis::tensor];
    if (s.expert >= 0) {
      const int data = plan_.hosted_by(rank).front().data;
      args["expert"] =
        name_of_expert(plan_, s.expert, {data, s.action.direction, s.action.stage});
    }
    if (s.action.op == op::update) {
      args["gradients"] = s.gradients;
      args["staleness"] = s.stalest;
    }
    add({{"ph", "X"},
         {"pid", 0},
         {"tid", rank},
         {"name", to_string(s.action) + (s.expert < 0 ? "" : " (expert)")},
         {"cat", std::string{letter_of(s.action.op)}},
         {"cname", colour_of(s.action.op)},
         {"ts", microseconds(s.start)},
         {"dur", microseconds(s.end - s.start)},
         {"args", std::move(args)}});
  }

  void count(int rank, const std::string& counter, nanoseconds when, int value) {
    add({{"ph", "C"},
         {"pid", 0},
         {"name", counter + " of rank " + std::to_string(rank)},
         {"ts", microseconds(when)},
         {"args", {{counter, value}}}});
  }

  /// \param is_later_part whether a part of the action ran before
  void note_messages(int rank, const measured_action& s, bool is_later_part) {
    const auto& a = s.action;
    const bool back = goes_back(a.op);
    if (a.op != op::forward && !back)
      return;
    const auto kind = back ? op::backward : op::forward;
    // the sender of the action's input
    const int below = back ? a.stage + 1 : a.stage - 1;
    const int replica = pipeline_of(rank, a);
    auto& sent = flows_[{kind, replica, a.stage, a.microbatch}];
    sent.from = rank;
    sent.sent = s.end;
    if (is_later_part)
      return;
    auto& received = flows_[{kind, replica, below, a.microbatch}];
    received.to = rank;
    received.used = s.start;
  }

  // An arrow begins within the slice that sent the message and ends in the slice that
  // used it.
  void add_flow(const message& m, const flow& f) {
    const auto name = std::get<0>(m) == op::forward ? "activation" : "gradient";
    const int id = ++flows_added_;
    add({{"ph", "s"},
         {"pid", 0},
         {"tid", f.from},
         {"id", id},
         {"name", name},
         {"cat", "message"},
         {"ts", microseconds(f.sent) - 0.001}});
    add({{"ph", "f"},
         {"bp", "e"},
         {"pid", 0},
         {"tid", f.to},
         {"id", id},
         {"name", name},
         {"cat", "message"},
         {"ts", microseconds(f.used)}});
  }

  const run_plan& plan_;
  std::string text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
  bool has_events_ = false;
  std::map<message, flow> flows_;
  int flows_added_ = 0;
};

} // namespace

std::string trace_json(const run_plan& plan, const record& ran,
                       const std::string& title) {
  return tracer{plan, ran, title}.text();
}

} // namespace troupe
