// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/changeable_options.hpp"

namespace troupe {

namespace {

constexpr changeable_option all_changeable[] = {
  {"--data", "data"},
  {"--seed", "seed"},
  {"--precision", "precision"},
  {"TROUPE_BF16", "precision"},
  {"--microbatches", "microbatches"},
  {"--microbatch-sizes", "microbatch-sizes"},
  {"--sequence-lengths", "sequence-lengths"},
  {"--steps", "steps"},
  {"--lr", "lr"},
  {"--lr-schedule", "lr-schedule"},
  {"--momentum", "momentum"},
  {"--betas", "betas"},
  {"--eps", "eps"},
  {"--weight-decay", "weight-decay"},
  {"--decay", "decay"},
  {"--clip", "clip"},
  {"clip of", "clip"},
  {"--expert-top-k", "expert-top-k"},
  {"--capacity", "capacity"},
  {"--balance", "balance"},
  {"--gate-noise", "gate-noise"},
};

} // namespace

std::span<const changeable_option> changeable_options() {
  return all_changeable;
}

std::string changeable_names() {
  std::string result;
  std::string_view last;
  for (const auto& [option, name] : all_changeable) {
    if (name != last) // precision and clip have two entries
      result += (result.empty() ? "" : ", ") + std::string{name};
    last = name;
  }
  return result;
}

} // namespace troupe
