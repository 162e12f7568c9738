#include "experiments/report/page.hpp"

#include "experiments/report/trace.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

/// Of a run, so that seven runs make a page of a few MB.
constexpr std::size_t usual_actions = 20'000;

std::size_t most_actions(const run_plan& plan,
                         const std::vector<measured_action>& row) {
  const auto steps = static_cast<std::size_t>(std::max(plan.dims.steps, 1));
  const auto ranks = static_cast<std::size_t>(std::max(plan.ranks(), 1));
  return std::max(usual_actions / ranks, 2 * (row.size() / steps + 1));
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

} // namespace

std::string timeline_json(const run_account& run) {
  const auto& plan = run.request->plan;
  std::size_t cut = 0;
  std::string ranks;
  for (std::size_t rank = 0; rank < run.result.actions.size(); ++rank) {
    const auto& row = run.result.actions[rank];
    ranks += rank == 0 ? "[" : ",\n[";
    const auto shown = std::min(row.size(), most_actions(plan, row));
    if (shown < row.size() || run.result.actions_cut)
      cut = std::max(cut, shown);
    nanoseconds before = 0;
    for (std::size_t i = 0; i < shown; ++i) {
      const auto& one = row[i];
      const auto pipeline = pipeline_of(plan, static_cast<int>(rank), one.what);
      ranks += i == 0 ? "" : ",";
      for (const std::int64_t number :
           {std::int64_t{static_cast<int>(one.what.what)}, std::int64_t{one.what.stage},
            std::int64_t{one.what.microbatch}, std::int64_t{pipeline},
            std::int64_t{one.version}, std::int64_t{one.start - before}})
        ranks += std::to_string(number) + ",";
      ranks += std::to_string(one.end - one.start);
      before = one.end;
    }
    ranks += "]";
  }
  const json about{{"text", run.request->text},
                   {"timing", name_of(run.timing())},
                   {"microbatches", plan.dims.microbatches},
                   {"cut", cut}};
  auto text = about.dump(-1, ' ', false, json::error_handler_t::replace);
  text.pop_back();
  return text + ",\"ranks\":[" + ranks + "]}";
}

std::string report_page(const std::string& results,
                        const std::vector<std::string>& timelines) {
  std::string data = "{\"letters\":\"";
  for (int what = 0; what < op_count; ++what)
    data += letter_of(static_cast<op>(what));
  data += "\",\"results\":" + results + ",\"runs\":[";
  for (const auto& one : timelines)
    data += (&one == &timelines.front() ? "\n" : ",\n") + one;
  data += "]}";
  replace_all(data, "</", "<\\/"); // nothing in it ends the script
  replace_all(data, "<!--", "<\\u0021--");
  std::string page{page_text};
  constexpr std::string_view place = "@page_data@";
  return page.replace(page.find(place), place.size(), data);
}

} // namespace troupe
