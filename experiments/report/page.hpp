// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/report/results.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The HTML of report.html; its data go where `@page_data@` stands.
extern const std::string_view page_text;

/// The page around report.html that --watch serves: it asks for what is new.
extern const std::string_view live_text;

/// The timeline of a run, as JSON: for each rank nine numbers an action or part of one.
/// They are its kind, stage, microbatch, pipeline, version, idle nanoseconds before it,
/// nanoseconds that it took, marks (page.cpp), and the versions of its stage that were
/// alive then. Of a long run the first actions: two minibatches at least, if the
/// recorder has them. Beside them what lays the schedule out at other costs
/// (page_orders.hpp), and what ranks hold at most.
std::string timeline_json(const run_account& run);

/// What ranks ran last, as JSON: those numbers for each rank, and from when on all of
/// them are known.
std::string recent_json(const run_plan& plan, timing_kind timing,
                        const std::vector<nanoseconds>& from, const record& ran);

/// report.html, which needs no other file.
/// \param results results.json
/// \param table the results as the terminal shows them
/// \param timelines of the runs in results, in their order
std::string report_page(const std::string& results, const std::string& table,
                        const std::vector<std::string>& timelines);

} // namespace troupe
