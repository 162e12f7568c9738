// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/run_options.hpp"

#include "experiments/options/option_list.hpp"
#include "kernels/bf16_block.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

void add_threads(option_list& to, typed_run& place) {
  to.begin_group("Clock and machines");
  to.add_option("--threads", place.threads, "Threads of the CPU. Value 0: its cores.");
}

void add_device(option_list& to, typed_run& place) {
  to.begin_group("Clock and machines");
  to.add_option(
    "--device", place.device,
    "What computes: cpu, cuda (all GPUs of a machine), or a list as "
    "cuda:0,cuda:1,cpu. Ranks take them in turns, so several may share one. With "
    "--nodes they are those of the rank's node. Evaluations compute each stage where "
    "its "
    "rank does, and with --nodes on the CPU.");
}

void add_device_forwards(option_list& to, typed_run& place) {
  to.begin_group("Clock and machines");
  to.add_option("--device", place.device,
                "What computes: cpu, cuda (all GPUs of this machine), or a list as "
                "cuda:0,cuda:1,cpu. Stages take them in turns, so several may share "
                "one.");
}

void add_precision(option_list& to, typed_run& place, bool trains) {
  to.begin_group("Clock and machines");
  to.add_option(
    "--precision", place.precision,
    trains
      ? "Of activations, their gradients and the operands of products: fp32 or bf16. "
        "On GPUs also tf32: fp32, but operands of products have 11 bits. Sums, "
        "statistics, the weights that are updated and their gradients are fp32."
      : "Of activations and their gradients: fp32 or bf16. In bf16 messages of bytes "
        "in --cost are half as long, and so is what --sequence-parallel gathers of "
        "tensor. What is summed is fp32, and so are the rows of experts.");
}

void add_precision_forwards(option_list& to, typed_run& place) {
  to.begin_group("Clock and machines");
  to.add_option("--precision", place.precision,
                "Of activations and the operands of products: fp32 or bf16. On GPUs "
                "also tf32: fp32, but operands of products have 11 bits.");
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

tl::expected<std::vector<processor>, std::string> parse_devices(const std::string& text,
                                                                int gpus) {
  std::vector<processor> result;
  if (text == "cuda") {
    for (int gpu = 0; gpu < std::max(gpus, 1); ++gpu)
      result.push_back({gpu});
    return result;
  }
  const auto parts = text.empty() ? std::vector<std::string>{""} : split(text, ',');
  for (const auto& part : parts) {
    const auto number_of = [](const std::string& digits) {
      const auto value = number(digits);
      return value && *value == std::floor(*value) && *value < most_gpus
               ? static_cast<int>(*value)
               : processor::cpu;
    };
    processor one;
    if (part.starts_with("cuda:"))
      one.gpu = number_of(part.substr(5));
    if (part != to_string(one))
      return problem{"--device '" + part
                     + "': write cpu or cuda alone, or a list as cuda:0,cuda:1,cpu"};
    if (one.gpu >= gpus && gpus > 0)
      return problem{"--device " + part + ": this machine has "
                     + (gpus == 1 ? "one GPU, cuda:0"
                                  : std::to_string(gpus) + " GPUs, from cuda:0 to cuda:"
                                      + std::to_string(gpus - 1))};
    result.push_back(one);
  }
  if (std::ranges::none_of(result, &processor::is_gpu))
    result.clear();
  return result;
}

tl::expected<run_options, std::string> parse(const typed_run& typed) {
  if (typed.clock != "real" && typed.clock != "virtual")
    return problem{"--clock " + typed.clock + ": the clock is real or virtual"};
  if (typed.threads < 0 || typed.threads > 1024)
    return problem{"--threads is from 0 (the machine's cores) to 1,024"};
  if (!(typed.stall_timeout >= 0.001 && typed.stall_timeout <= 1e6))
    return problem{"--stall-timeout is from 0.001 to 1,000,000 seconds"};
  auto processors = std::vector<processor>{};
  if (typed.device != "cpu") {
    auto parsed = parse_devices(typed.device, typed.on_nodes ? 0 : count_of_gpus());
    if (!parsed)
      return problem{parsed.error()};
    if (const auto why = typed.on_nodes ? "" : absence_of_gpus();
        !parsed->empty() && !why.empty())
      return problem{"--device " + typed.device + ": " + why};
    processors = std::move(*parsed);
  }
  if (typed.precision == "tf32") {
    if (processors.empty())
      return problem{"--precision tf32 is of a GPU's products: train, compare, "
                     "verify, bench and evaluate take it with --device cuda"};
    for (auto& one : processors)
      one.tf32 = one.is_gpu();
  } else if (typed.precision != "fp32" && typed.precision != "bf16") {
    return problem{"--precision " + typed.precision
                   + ": values are fp32 or bf16, and a GPU's products also tf32"};
  }
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
    .processors = std::move(processors),
    .lists_processors = typed.device != "cuda",
    .threads = typed.threads,
    .stall_timeout =
      std::chrono::milliseconds{static_cast<std::int64_t>(typed.stall_timeout * 1000)}};
}

} // namespace troupe
