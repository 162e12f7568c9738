// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/study_page.hpp"

#include "experiments/report/page.hpp"

namespace troupe {

std::string study_page(const std::string& json) {
  return page_with_data(study_text, json);
}

} // namespace troupe
