// SPDX-License-Identifier: BSD-3-Clause
// The table of algorithms for a GPU's products, by measurements in a training.

#include "experiments/benchmarks/benchmarks.hpp"
#include "experiments/options/output_places.hpp"
#include "experiments/options/parsing.hpp"
#include "models/input_file.hpp"
#include "models/whole_file.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

/// The product of a key: "768' 1024 2304 bf16 to fp32, adds" has 768 rows, depth 1,024
/// and 2,304 columns. A factor that is read transposed has a mark.
std::string text_of(const cuda::product_key& key) {
  const auto sizes = std::to_string(key.m) + (key.a_transposed ? "' " : " ")
                     + std::to_string(key.k) + (key.b_transposed ? "' " : " ")
                     + std::to_string(key.n);
  const std::string end = key.epilogue == epilogue_kind::none
                            ? ""
                            : std::string{", "} + name_of(key.epilogue);
  return sizes + " " + cuda::name_of(key.operands)
         + (key.result_is_bf16 ? " to bf16" : " to fp32") + end
         + (key.adds ? ", adds" : "");
}

/// The table of a file; empty if there is no file. The error is one sentence.
tl::expected<cuda::product_choices, std::string>
choices_in(const std::filesystem::path& path) {
  if (std::error_code unknown; !std::filesystem::exists(path, unknown))
    return {};
  const auto file = input_file::open(path, "the table of algorithms");
  if (!file)
    return problem{"--choose: " + file.error()};
  auto choices = cuda::parse_choices(file->content());
  if (!choices)
    return problem{"--choose: " + path.string() + ": " + choices.error()};
  return choices;
}

} // namespace

cuda::product_choices measure_choices(const benchmark& b) {
  auto plan = plan_of_1f1b(b.plan, 1, 2);
  plan.machine.threads = 1;
  plan.machine.stall_timeout =
    std::chrono::minutes{10}; // an action measures many algorithms
  plan.observed.choices = std::make_shared<cuda::product_choices>();
  (void)performed(plan);
  for (const auto& [key, choice] : plan.observed.choices->rows)
    b.report({"products",
              text_of(key) + ", algorithm " + std::to_string(choice.algorithm),
              choice.microseconds, "us",
              choice.microseconds / choice.first_microseconds, "algorithm 0"});
  return std::move(*plan.observed.choices);
}

tl::expected<std::size_t, std::string> write_choices(const benchmark& b) {
  const std::filesystem::path path = b.asked.run.choose;
  auto choices = choices_in(path);
  if (!choices)
    return problem{choices.error()};
  if (auto error = write_error({"--choose", path}); !error.empty())
    return problem{error};
  auto measured = measure_choices(b);
  for (const auto& [key, choice] : measured.rows)
    choices->rows.insert_or_assign(key, choice);
  if (auto error = write_whole_file(path, cuda::to_csv(*choices)); !error.empty())
    return problem{"--choose: " + error};
  return measured.rows.size();
}

} // namespace troupe
