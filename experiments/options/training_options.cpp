// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/training_options.hpp"

#include "experiments/options/option_catalog.hpp"
#include "experiments/options/run_options.hpp"
#include "experiments/options/saved_options.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

/// Advice on a difference, and the words between the advice and "say --change".
struct difference_advice {
  std::string text, joint;
};

/// Differences with names and advice, listed for one sentence.
class difference_list {
public:
  /// \param changes names that --change has, and must keep
  explicit difference_list(const std::vector<std::string>& changes) {
    for (const auto& name : changes)
      names_ += (names_.empty() ? "" : ",") + name;
  }

  void add(const std::string& name, const std::string& recorded, const std::string& now,
           const difference_advice& advice) {
    text_ += (text_.empty() ? "" : "; ") + recorded + ", and this run has "
             + (now.empty() ? "none" : now);
    const auto known = split(names_, ',');
    if (std::ranges::find(known, name) == known.end()) // clip has two values
      names_ += (names_.empty() ? "" : ",") + name;
    if (std::ranges::find(advice_, advice.text, &difference_advice::text)
        == advice_.end())
      advice_.push_back(advice);
  }

  std::string sentence() const {
    if (text_.empty())
      return {};
    std::string advice;
    for (const auto& entry : advice_)
      advice += (advice.empty() ? "" : "; ") + entry.text;
    return "was trained with " + text_ + ": " + advice
           + (advice_.size() == 1 ? advice_.front().joint : "; or") + " say --change "
           + names_;
  }

private:
  std::string text_, names_;
  std::vector<difference_advice> advice_; // each once
};

/// Advice on an option that was typed, that came from the environment, or that ends a
/// rate's course.
/// \param had value of the option in the checkpoint
difference_advice advice_on_option(const std::string& option, const std::string& had) {
  if (option == "TROUPE_BF16")
    return {"set TROUPE_BF16=" + had, ", or"};
  if (option == "--steps")
    return {"the rate's cosine ends at that step", ", so"};
  if (option == "clip of")
    return {had == "stage" ? "give clip=stage in --schedule" : "leave clip=stage out",
            ", or"};
  if (option == "--betas")
    return {"leave --betas, beta1= and beta2= out", ", or"};
  for (const std::string_view name :
       {"--lr", "--momentum", "--eps", "--weight-decay", "--clip"})
    if (option == name) {
      auto key = option.substr(2);
      std::ranges::replace(key, '-', '_');
      return {"leave " + option + " and " + key + "= out", ", or"};
    }
  return {"leave " + option + " out", ", or"};
}

/// Advice on other data: the names differ, or the content of a file differs.
difference_advice advice_on_data(const training_facts& recorded,
                                 const training_facts& now) {
  const auto is_same = [&](const char* option) {
    const auto had = recorded.options.find(option), has = now.options.find(option);
    return had == recorded.options.end() || has == now.options.end()
             ? (had == recorded.options.end()) == (has == now.options.end())
             : had->second == has->second;
  };
  std::string differing;
  for (const char* option : {"--data", "--evaluate-data", "--seed", "--data-seed"})
    if (!is_same(option))
      differing += (differing.empty() ? "" : " and ") + std::string{option};
  if (differing.empty())
    return {"restore that data, or name other data with --data", " and"};
  return {"leave " + differing + " out", ", or"};
}

} // namespace

std::map<std::string, std::string> options_of_training(const options& o,
                                                       const run_plan& plan) {
  auto result = recorded_options(o, &plan);
  const auto& optimizer = plan.work->optimizer;
  if (makes_bf16_by_cpu(plan))
    result["TROUPE_BF16"] = paths_of(o.run.sums);
  if (optimizer.clip > 0)
    result["clip of"] = optimizer.scope == clip_scope::stage ? "stage" : "network";
  return result;
}

std::string other_network(const std::map<std::string, std::string>& recorded,
                          const std::map<std::string, std::string>& now) {
  for (const auto& [option, had] : recorded) {
    const auto current = now.find(option);
    const bool is_of_data = option == "--data" || option == "--evaluate-data";
    if (current != now.end() && current->second != had && !is_of_data
        && change_name_of(option).empty())
      return "was trained with " + option + " " + had + ", and this run has "
             + current->second + ": leave " + option
             + " out, as a resumed training keeps its network";
  }
  for (const char* flag : {"--tied", "--shared-expert"}) // absent: not given
    if (!recorded.empty() && recorded.contains(flag) != now.contains(flag))
      return std::string{"was trained with"} + (recorded.contains(flag) ? " " : "out ")
             + flag + ", and this run is " + (now.contains(flag) ? "with " : "without ")
             + flag + ": leave " + flag
             + " out, as a resumed training keeps its network";
  return {};
}

std::string resume_error(const training_facts& recorded, const training_facts& now,
                         const std::vector<std::string>& changes) {
  const auto may_change = [&](std::string_view name) {
    return std::ranges::find(changes, name) != changes.end();
  };
  const auto value = [](const training_facts& facts, const char* option) {
    const auto entry = facts.options.find(option);
    return entry == facts.options.end() ? std::string{} : entry->second;
  };
  const bool has_course = value(recorded, "--lr-schedule").starts_with("cosine")
                          && value(now, "--lr-schedule").starts_with("cosine");
  if (auto error = other_network(recorded.options, now.options); !error.empty())
    return error;
  difference_list differences{changes};
  for (const auto& [option, had] : recorded.options) {
    const auto current = now.options.find(option);
    if (current == now.options.end() || current->second == had || option == "--data"
        || (option == "--steps" && !has_course))
      continue;
    const auto name = change_name_of(option);
    if (!name.empty() && !may_change(name))
      differences.add(name, option + " " + (had.empty() ? "none" : had),
                      current->second, advice_on_option(option, had));
  }
  if (const auto had = value(recorded, "--seed"), has = value(now, "--data-seed");
      !recorded.options.contains("--data-seed") && !had.empty() && !has.empty()
      && had != has && !may_change("data-seed"))
    differences.add("data-seed", "--seed " + had + " of the data", has,
                    advice_on_option("--data-seed", had));
  if (recorded.data && now.data && *recorded.data != *now.data && !may_change("data"))
    differences.add("data", "the data '" + to_string(*recorded.data) + "'",
                    "'" + to_string(*now.data) + "'", advice_on_data(recorded, now));
  return differences.sentence();
}

std::string without_facts(const std::string& checkpoint) {
  return checkpoint
         + " was written by an older version of troupe, and lacks the training's data "
           "and options. This command's data and options are used, and are not "
           "compared.";
}

std::string without_bf16_path(const std::string& checkpoint,
                              const training_facts& recorded, bf16_path used) {
  const auto precision = recorded.options.find("--precision");
  if (precision == recorded.options.end() || precision->second != "bf16"
      || recorded.options.contains("TROUPE_BF16"))
    return {};
  return checkpoint
         + " does not record the training's TROUPE_BF16, and this run uses TROUPE_BF16="
         + to_text(used)
         + ": set the training's value, as sums of bf16 products may differ";
}

} // namespace troupe
