// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/optimizer_catalog.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Options of the optimizer, as typed by the user.
struct typed_optimizer {
  std::string name = "adamw";
  std::optional<double> rate;
  std::string rate_schedule = "constant";
  double momentum = 0;
  std::string betas = "0.9,0.999";
  double epsilon = 1e-8;
  std::optional<double> weight_decay;
  std::string decay = "all";
  std::string clip = "0";
};

/// The end of a sentence about an option that only some optimizers read, with '%' for
/// the option: "applies only to sgd: say --optimizer sgd too, or leave % out".
template <bool optimizer_rule::*Reads>
std::string_view applies_to() {
  static const std::string text = [] {
    std::string names, first;
    for (const auto& rule : optimizer_catalog())
      if (rule.*Reads) {
        first = first.empty() ? rule.name : first;
        names += (names.empty() ? "" : ", ") + std::string{rule.name};
      }
    return "applies only to " + names + ": say --optimizer " + first
           + " too, or leave % out";
  }();
  return text;
}

/// Parses and checks the typed options. The error is one sentence with the mistake and
/// the allowed values.
tl::expected<optimizer_options, std::string> parse(const typed_optimizer& typed);

/// The optimizer of one run: the optimizer of all runs, changed by the schedule's
/// values of lr, momentum, eps, weight_decay, beta1, beta2 and clip. The error is one
/// sentence.
/// \param values the schedule's parameters by name; the optimizer's parameters are
/// removed from the map
tl::expected<optimizer_options, std::string>
optimizer_of_run(optimizer_options of_all, std::map<std::string, std::string>& values);

} // namespace troupe
