// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/page.hpp"

#include "experiments/report/page_orders.hpp"
#include "models/utf8.hpp"
#include "plan/stage_indexing.hpp"
#include "schedules/bounds.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <utility>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

/// Actions that a page draws of a run: seven runs make a few MB.
constexpr std::size_t usual_actions = 20'000;

// Marks of an action. Meetings that begin at the action's end (part_end) stand 8 bits
// higher.
constexpr std::uint32_t is_part = 1;       // more parts of the action follow
constexpr std::uint32_t is_later_part = 2; // parts of the action came before
constexpr std::uint32_t is_first = 4;      // of a pair
constexpr std::uint32_t is_second = 8;
constexpr std::uint32_t of_expert = 16;

/// Number of a rank's actions that are drawn: at least all of the run's first two
/// batches. Microbatches in a record count from the run's first.
std::size_t drawn_of(const run_plan& plan, const std::vector<measured_action>& row) {
  const auto third = std::ranges::find_if(row, [&](const measured_action& measured) {
    return measured.action.op == op::forward
           && measured.action.microbatch >= 2 * plan.dims.microbatches;
  });
  const auto ranks = static_cast<std::size_t>(std::max(plan.ranks(), 1));
  return std::min(row.size(), std::max(usual_actions / ranks,
                                       static_cast<std::size_t>(third - row.begin())));
}

/// The numbers of the actions that a rank ran, in order.
std::string numbers_of(const run_plan& plan, int rank,
                       std::span<const measured_action> row) {
  std::string text;
  nanoseconds previous_end = 0;
  std::set<std::pair<action, int>> open; // unfinished ones, and their experts
  for (const auto& measured : row) {
    const auto& [ran_action, expert] = std::pair{measured.action, measured.expert};
    const auto pipeline =
      stage_indexing{plan}.pipeline({plan.data_of(rank), ran_action.direction,
                                     ran_action.stage, plan.shard_of(rank)});
    auto marks = std::uint32_t{measured.ends_in} << 8U;
    marks |= open.contains({ran_action, expert}) ? is_later_part : 0U;
    marks |= ran_action.pair == in_pair::first ? is_first : 0U;
    marks |= ran_action.pair == in_pair::second ? is_second : 0U;
    marks |= expert >= 0 ? of_expert : 0U;
    if (measured.part) {
      marks |= is_part;
      open.emplace(ran_action, expert);
    } else {
      open.erase({ran_action, expert});
    }
    for (const std::int64_t number :
         {std::int64_t{static_cast<int>(ran_action.op)}, std::int64_t{ran_action.stage},
          std::int64_t{ran_action.microbatch}, static_cast<std::int64_t>(pipeline),
          std::int64_t{measured.version}, std::int64_t{measured.start - previous_end},
          std::int64_t{measured.end - measured.start}, std::int64_t{marks},
          std::int64_t{measured.versions_alive}})
      text += (text.empty() ? "" : ",") + std::to_string(number);
    previous_end = measured.end;
  }
  return text;
}

/// Whether ranks wait for pipelines and nothing else; a page can lay out such a run.
bool is_pipeline_alone(const run_plan& plan) {
  return plan.mesh[axis::data] == 1 && plan.mesh[axis::tensor] == 1
         && plan.mesh[axis::expert] == 1 && !plan.uneven;
}

/// The most stage-microbatches that each rank holds, by the schedule. Null if there are
/// more ranks than a page draws curves for.
json bounds_json(const run_plan& plan) {
  constexpr int most_curves = 64;
  if (plan.ranks() > most_curves)
    return nullptr;
  auto result = json::array();
  const auto dims = settled(plan.sch, plan.dims);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    int held = 0;
    for (const auto& stage : bounds_of(plan.sch, dims, plan.pipe_rank(rank)))
      held += stage.stashes;
    const int most = plan.sch.most_held;
    result.push_back(most > 0 ? std::min(most, held) : held);
  }
  return result;
}

/// The time of a message between two stages in virtual time. Null in real time, and
/// where messages differ.
json link_json(const run_plan& plan) {
  const auto& link = plan.machine.links.inside;
  if (plan.machine.clock == clock_kind::real || plan.machine.links.ranks_each > 0
      || (plan.work && link.bytes_per_second > 0)
      || (plan.directions() > 1 && link.bytes_per_second > 0))
    return nullptr;
  const auto message_bytes = [&] {
    const auto& sizes = plan.work.simulated();
    return sizes.stored_bytes(sizes.message);
  };
  return {{"latency", link.latency},
          {"occupied", link.occupied(plan.work ? 0 : message_bytes())}};
}

/// The properties of a schedule from which a page lays it out.
json schedule_json(const run_plan& plan) {
  return {{"pipeline_alone", is_pipeline_alone(plan)},
          {"stages", plan.dims.stages},
          {"directions", plan.directions()},
          {"flushes", plan.sch.weights.flushes},
          {"eager", plan.sch.eager},
          {"ahead", plan.sch.recomputes == recomputation::ahead},
          {"keys", plan.sch.active_keys().value_or(0)},
          {"update_every", update_size(plan.sch, plan.dims)}};
}

std::string letters_of_actions() {
  std::string letters;
  for (int kind = 0; kind < op_count; ++kind)
    letters += letter_of(static_cast<op>(kind));
  return letters;
}

void replace_all(std::string& text, std::string_view old_text,
                 std::string_view new_text) {
  for (auto position = text.find(old_text); position != text.npos;
       position = text.find(old_text, position + new_text.size()))
    text.replace(position, old_text.size(), new_text);
}

} // namespace

std::string page_with_data(std::string_view page, std::string json) {
  replace_all(json, "</", "<\\/");
  replace_all(json, "<!--", "<\\u0021--");
  constexpr std::string_view placeholder = "@page_data@";
  std::string result{page};
  return result.replace(result.find(placeholder), placeholder.size(), json);
}

std::string timeline_json(const run_account& run) {
  const auto& plan = run.request->plan;
  std::size_t cut = 0;
  std::string ranks;
  for (std::size_t rank = 0; rank < run.result.actions.size(); ++rank) {
    const auto& row = run.result.actions[rank];
    const auto drawn = drawn_of(plan, row);
    if (drawn < row.size() || run.result.actions_cut)
      cut = std::max(cut, drawn);
    ranks += (rank == 0 ? "[" : ",\n[")
             + numbers_of(plan, static_cast<int>(rank), std::span{row}.first(drawn))
             + "]";
  }
  auto text = json_text(json{{"text", run.request->text},
                             {"timing", name_of(run.timing())},
                             {"failure", run.result.failure},
                             {"microbatches", plan.dims.microbatches},
                             {"cut", cut},
                             {"schedule", schedule_json(plan)},
                             {"bounds", bounds_json(plan)},
                             {"link", link_json(plan)}});
  text.pop_back();
  return text + ",\"orders\":" + (is_pipeline_alone(plan) ? orders_json(plan) : "[]")
         + ",\"ranks\":[" + ranks + "]}";
}

std::string recent_json(const run_plan& plan, timing_kind timing,
                        const std::vector<nanoseconds>& from, const record& ran) {
  std::string ranks;
  for (std::size_t rank = 0; rank < ran.size(); ++rank)
    ranks += (rank == 0 ? "[" : ",[")
             + numbers_of(plan, static_cast<int>(rank), ran[rank]) + "]";
  return "{\"letters\":\"" + letters_of_actions() + "\",\"timing\":\"" + name_of(timing)
         + "\",\"microbatches\":" + std::to_string(plan.dims.microbatches)
         + ",\"from\":" + json_text(json(from)) + ",\"ranks\":[" + ranks + "]}";
}

std::string report_page(const std::string& results, const std::string& table,
                        const std::vector<std::string>& timelines) {
  auto data = "{\"letters\":\"" + letters_of_actions() + "\",\"table\":"
              + json_text(json(table)) + ",\"results\":" + results + ",\"runs\":[";
  for (const auto& timeline : timelines)
    data += (&timeline == &timelines.front() ? "\n" : ",\n") + timeline;
  return page_with_data(page_text, data + "]}");
}

} // namespace troupe
