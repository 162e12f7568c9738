#include "experiments/options/run_options.hpp"

#include "experiments/options/option_list.hpp"
#include "kernels/bf16_block.hpp"

namespace troupe {

void add_threads(option_list& to, typed_run& place) {
  to.begin_group("Clock and machines");
  to.add_option("--threads", place.threads, "Threads of the CPU. Value 0: its cores.");
}

void add_precision(option_list& to, typed_run& place, bool trains) {
  to.begin_group("Clock and machines");
  to.add_option(
    "--precision", place.precision,
    trains
      ? "Of activations, their gradients and the operands of products: fp32 or bf16. "
        "Sums, statistics, the weights that are updated and their gradients are fp32."
      : "Of activations and their gradients: fp32 or bf16. In bf16 messages of bytes "
        "in --cost are half as long, and so is what --sequence-parallel gathers of "
        "tensor. What is summed is fp32, and so are the rows of experts.");
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

std::string warning_of(const run_options& o) {
  if (o.products == precision::fp32)
    return {};
  const auto path = chosen_bf16_path();
  if (!path || *path == bf16_path::amx)
    return {};
  if (*path == bf16_path::dot)
    return "products of bf16 are made without AMX, and may take longer than those of "
           "fp32: ./troupe bench --precision bf16 measures both";
  return "products of bf16 are made without instructions for them, and take many times "
         "as long as those of fp32";
}

tl::expected<run_options, std::string> parse(const typed_run& typed) {
  if (typed.clock != "real" && typed.clock != "virtual")
    return problem{"--clock " + typed.clock + ": the clock is real or virtual"};
  if (typed.threads < 0 || typed.threads > 1024)
    return problem{"--threads is from 0 (the machine's cores) to 1,024"};
  if (!(typed.stall_timeout >= 0.001 && typed.stall_timeout <= 1e6))
    return problem{"--stall-timeout is from 0.001 to 1,000,000 seconds"};
  if (typed.precision != "fp32" && typed.precision != "bf16")
    return problem{"--precision " + typed.precision + ": values are fp32 or bf16"};
  const bool rounds = typed.precision == "bf16";
  bool by_pairs = false;
  if (rounds) {
    const auto path = chosen_bf16_path();
    if (!path)
      return problem{path.error()};
    by_pairs = *path == bf16_path::dot;
  }
  return run_options{
    .clock = typed.clock == "real" ? clock_kind::real : clock_kind::virtual_time,
    .products = rounds ? precision::bf16 : precision::fp32,
    .sums_by_pairs = by_pairs,
    .threads = typed.threads,
    .stall_timeout =
      std::chrono::milliseconds{static_cast<std::int64_t>(typed.stall_timeout * 1000)}};
}

} // namespace troupe
