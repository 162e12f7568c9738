// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/evaluation_options.hpp"

#include "experiments/options/option_list.hpp"

namespace troupe {

void add_evaluation(option_list& to, evaluation_options& typed) {
  to.begin_group("Evaluation");
  to.add_option(
    "--evaluate-every", typed.every,
    "Steps from one evaluation to the next. Value 0: one evaluation, at the "
    "end.");
  to.add_option("--evaluate-samples", typed.samples,
                "Held-out samples of an evaluation.");
  to.add_option("--verify", typed.verify,
                "Number of first steps that are checked against a loop without actors "
                "before each schedule runs, as the program verify does. The results "
                "contain the verdict. Value 0: no check.");
}

std::string validation_error(const evaluation_options& o) {
  return o.every < 0 || o.samples < 0 || o.verify < 0
           ? "--evaluate-every, --evaluate-samples and --verify are at least 0"
           : "";
}

} // namespace troupe
