#include "experiments/options/run_options.hpp"

#include "experiments/options/option_list.hpp"

namespace troupe {

void add_threads(option_list& to, typed_run& place) {
  to.begin_group("Clock and machines");
  to.add_option("--threads", place.threads, "Threads of the CPU. Value 0: its cores.");
}

void add_clock(option_list& to, typed_run& place) {
  to.begin_group("Clock and machines");
  to.add_option("--clock", place.clock, "Clock of the run: real or virtual.");
  to.add_option(
    "--stall-timeout", place.stall_timeout,
    "Seconds in which no action ends, until the run says who waits for whom and is "
    "given up. Actions under way put that off, up to 20 times the longest of their "
    "kind. Actions that are the first of their kind put it off as long as they take at "
    "0.1 GFLOP/s.");
}

tl::expected<run_options, std::string> parse(const typed_run& typed) {
  if (typed.clock != "real" && typed.clock != "virtual")
    return problem{"--clock " + typed.clock + ": the clock is real or virtual"};
  if (typed.threads < 0 || typed.threads > 1024)
    return problem{"--threads is from 0 (the machine's cores) to 1,024"};
  if (!(typed.stall_timeout >= 0.001 && typed.stall_timeout <= 1e6))
    return problem{"--stall-timeout is from 0.001 to 1,000,000 seconds"};
  return run_options{
    .clock = typed.clock == "real" ? clock_kind::real : clock_kind::virtual_time,
    .threads = typed.threads,
    .stall_timeout =
      std::chrono::milliseconds{static_cast<std::int64_t>(typed.stall_timeout * 1000)}};
}

} // namespace troupe
