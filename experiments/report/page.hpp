#pragma once

#include "experiments/report/results.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// page/page.html with its style and its program, but for what it shows.
extern const std::string_view page_text;

/// What report.html draws of a run, as JSON: for each rank seven numbers an action, its
/// kind, stage, microbatch, pipeline, version, idle nanoseconds before it and
/// nanoseconds that it took. Of long runs the first actions, two minibatches at least.
std::string timeline_json(const run_account& run);

/// report.html: a page that needs nothing else. \param results results.json
/// \param timelines of runs in results, in their order
std::string report_page(const std::string& results,
                        const std::vector<std::string>& timelines);

} // namespace troupe
