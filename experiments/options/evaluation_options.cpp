#include "experiments/options/evaluation_options.hpp"

#include "experiments/options/option_list.hpp"

namespace troupe {

void add_evaluation(option_list& to, evaluation_options& place) {
  to.begin_group("Output");
  to.add_option("--evaluate-every", place.every,
                "Steps from one evaluation to the next. Value 0: one at the end.");
  to.add_option("--evaluate-samples", place.samples,
                "Held-out samples of an evaluation.");
}

std::string refusal(const evaluation_options& o) {
  return o.every < 0 || o.samples < 0
           ? "--evaluate-every and --evaluate-samples are at least 0"
           : "";
}

} // namespace troupe
