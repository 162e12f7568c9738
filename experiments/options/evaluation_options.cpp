// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/evaluation_options.hpp"

#include "experiments/options/option_list.hpp"

namespace troupe {

void add_evaluation(option_list& to, evaluation_options& typed) {
  to.begin_group("Evaluation");
  to.add_option(
    "--evaluate-every", typed.every,
    "Steps from one evaluation to the next. Value 0: only an evaluation at the end.");
  to.add_option("--evaluate-samples", typed.samples,
                "Held-out samples of an evaluation.");
  to.add_option("--verify", typed.verify,
                "Steps that are computed before each run and compared with a loop "
                "without actors. The results contain the verdict. Value 0: no check.");
}

std::string validation_error(const evaluation_options& o) {
  for (const auto& [option, value] :
       {std::pair{"--evaluate-every ", std::int64_t{o.every}},
        {"--evaluate-samples ", std::int64_t{o.samples}},
        {"--verify ", std::int64_t{o.verify}}})
    if (value < 0)
      return option + std::to_string(value) + ": the value is at least 0";
  return {};
}

} // namespace troupe
