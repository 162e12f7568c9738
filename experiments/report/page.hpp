// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/report/results.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The HTML of report.html; the data replace `@page_data@`.
extern const std::string_view page_text;

/// The HTML of the page that --watch serves, with the progress and report.html. The
/// page requests new data from the server.
extern const std::string_view live_text;

/// The HTML of the page of a study; the data replace `@page_data@`.
extern const std::string_view study_text;

/// The HTML of the page of `plan --planners`; the data replace `@page_data@`.
extern const std::string_view planners_text;

/// A page with JSON in place of `@page_data@`. No text in the JSON ends the page's
/// script.
std::string page_with_data(std::string_view page, std::string json);

/// The timeline of a run, as JSON. Each action, or part of an action, has nine numbers.
/// The first five are kind, stage, microbatch, pipeline and version. The next three are
/// idle nanoseconds before the action, nanoseconds of the action, and marks (page.cpp).
/// The last is the number of the stage's versions that were alive at the end of the
/// action. A long run is cut to the first actions: at least two batches, if the record
/// has two. If the run has only a pipeline, without replicas, shards and uneven
/// microbatches, the JSON also holds the orders for other costs (page_orders.hpp). For
/// up to 64 ranks the JSON holds each rank's limit of stashed microbatches by the
/// schedule, summed over the rank's stages.
/// \pre run.result.actions has the kept actions
std::string timeline_json(const run_account& run);

/// The latest actions of all ranks, as JSON, with the nine numbers of timeline_json()
/// for each action. `from` is, for each rank, the time from which all actions of the
/// rank are known, in nanoseconds on the run's clock.
std::string recent_json(const run_plan& plan, timing_kind timing,
                        const std::vector<nanoseconds>& from, const record& ran);

/// The text of report.html, which needs no other file.
/// \param results text of results.json
/// \param table the table of results on the terminal
/// \param timelines timeline_json() of each run in `results`, in the same order
std::string report_page(const std::string& results, const std::string& table,
                        const std::vector<std::string>& timelines);

} // namespace troupe
