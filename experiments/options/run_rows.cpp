// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/options/run_options.hpp"
#include "kernels/bf16_choice.hpp"
#include "models/short_text.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

/// Whether any value is bf16 under --precision bf16.
bool stores(run_view run) {
  const auto& sizes = run.o.cost.sizes;
  return run.o.trains || sizes.message > 0
         || (run.o.mesh.sequence_parallel && sizes.sum > 0);
}

bool rounds(const options& o) {
  return o.run.products == precision::bf16;
}

} // namespace

option_rows run_rows() {
  constexpr auto group = &typed_options::run;
  using typed = typed_run;
  const std::string of_tf32 = "\n"
                              "tf32\tonly on GPUs; fp32, but operands of products are "
                              "rounded to 11 significant bits";
  const auto has_clock = [](const program_info& p) {
    return programs::learns(p) && !p.measures;
  };
  return joined(
    under(
      "Devices and precision", programs::learns,
      {row<group, &typed::device>(
         "--device",
         "Devices of the ranks: cpu, cuda, or a list. With --nodes a rank uses devices "
         "of its node. Evaluations use each stage's device, and with --nodes the CPU.\n"
         "cpu\tthe CPU\n"
         "cuda\tall GPUs of the machine, in rotation\n"
         "cuda:0,cuda:1,cpu\tthese devices, in rotation; several ranks may share a "
         "device"),
       row<group, &typed::device>("--device",
                                  "Devices of the stages: cpu, cuda, or a list.\n"
                                  "cpu\tthe CPU\n"
                                  "cuda\tall GPUs of this machine, in rotation\n"
                                  "cuda:0,cuda:1,cpu\tthese devices, in rotation; "
                                  "several stages may share a device",
                                  {.has = programs::evaluates}),
       row<group, &typed::choose>(
         "--choose",
         "CSV file for the fastest algorithms of cuBLASLt. With --choose bench "
         "measures only these algorithms, for the products of two training steps on "
         "the first GPU. Rows of other products in the file stay.",
         {.has = programs::measures}),
       row<group, &typed::precision>(
         "--precision",
         "Type of activations and products: fp32, bf16, tf32. Sums, statistics, "
         "weights and the gradients of weights are fp32."
           + of_tf32,
         {.effect = {stores,
                     "in a simulation scales only --cost bytes=, and --cost tensor= "
                     "with --sequence-parallel: give either cost, or leave % out"},
          .record = {
            recorded_in::weights,
            [](run_view r) { return std::string{rounds(r.o) ? "bf16" : "fp32"}; },
            [](run_view r) { return r.training != nullptr || rounds(r.o); }},
          .changeable = true}),
       row<group, &typed::precision>(
         "--precision",
         "Type of activations and their gradients: fp32 or bf16. bf16 halves the "
         "messages of --cost bytes= and the gathers of --sequence-parallel. Sums and "
         "the rows of experts are fp32.",
         {.has = [](const program_info& p) { return p.runs() && !p.trains; }}),
       row<group, &typed::precision>(
         "--precision",
         "Type of activations and products: fp32, bf16 or tf32." + of_tf32,
         {.has = programs::evaluates}),
       row<group, &typed::threads>(
         "--threads", "Threads of the CPU. Value 0: the number of its cores.",
         {.has = programs::computes})}),
    under("Clock and costs", has_clock,
          {row<group, &typed::clock>("--clock", "Clock of the run: real or virtual."),
           row<group, &typed::stall_timeout>(
             "--stall-timeout",
             "Seconds without the end of an action after which the run stops and "
             "reports which ranks wait. A running action has at least 20 times the "
             "longest time of earlier actions of its kind. The first action of a kind "
             "has at least its time at 0.1 GFLOP/s.",
             {.effect = {[](run_view r) { return r.o.run.clock == clock_kind::real; },
                         "has no effect in virtual time, where a stall is found at "
                         "once: say --clock real, or leave % out"}})}));
}

std::string warning_of(const run_options& o) {
  if (!makes_bf16_by_cpu(o.products, o.processors))
    return {};
  if (chosen_bf16_path() == bf16_path::plain)
    return "products of bf16 use TROUPE_BF16=plain, and take many times as long as "
           "products of fp32";
  return notice_of_bf16_path();
}

tl::expected<run_options, std::string> parse(const typed_run& typed) {
  if (typed.clock != "real" && typed.clock != "virtual")
    return problem{"--clock " + typed.clock + ": write real or virtual"};
  if (typed.threads < 0 || typed.threads > 1024)
    return problem{"--threads " + std::to_string(typed.threads)
                   + ": give 1 to 1,024 threads, or 0 for the machine's cores"};
  if (!(typed.stall_timeout >= 0.001 && typed.stall_timeout <= 1e6))
    return problem{"--stall-timeout " + short_text(typed.stall_timeout)
                   + ": a timeout is from 0.001 to 1,000,000 seconds"};
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
  if (!typed.choose.empty() && (processors.empty() || !processors.front().is_gpu()))
    return problem{"--choose times algorithms of a GPU: say --device cuda too, or "
                   "leave --choose out"};
  if (typed.precision == "tf32") {
    if (processors.empty())
      return problem{"--precision tf32 applies only to products on GPUs: say --device "
                     "cuda too, or --precision fp32"};
    for (auto& device : processors)
      device.tf32 = device.is_gpu();
  } else if (typed.precision != "fp32" && typed.precision != "bf16") {
    return problem{"--precision " + typed.precision
                   + ": write fp32, bf16, or tf32 for products on GPUs"};
  }
  const bool rounds = typed.precision == "bf16";
  if (rounds)
    if (const auto path = known_bf16_path(); !path) // no path is measured yet
      return problem{path.error()};
  return run_options{
    .clock = typed.clock == "real" ? clock_kind::real : clock_kind::virtual_time,
    .products = rounds ? precision::bf16 : precision::fp32,
    .processors = std::move(processors),
    .lists_processors = typed.device != "cuda",
    .choose = typed.choose,
    .threads = typed.threads,
    .stall_timeout =
      std::chrono::milliseconds{static_cast<std::int64_t>(typed.stall_timeout * 1000)}};
}

} // namespace troupe
