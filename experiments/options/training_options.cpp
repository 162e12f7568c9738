// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/training_options.hpp"

#include "experiments/options/changeable_options.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/options/run_options.hpp"
#include "experiments/options/saved_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace troupe {

namespace {

/// The shortest text that parses to the same number.
std::string text_of(double number) {
  std::array<char, 32> text{};
  return {text.data(),
          std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

std::string text_of(const rate_schedule& course) {
  std::string result = course.cosine ? "cosine" : "constant";
  if (course.warmup > 0)
    result += ",warmup=" + std::to_string(course.warmup);
  if (course.floor > 0)
    result += ",floor=" + text_of(course.floor);
  return result;
}

/// Whether microbatches change the result, not only the order of sums. Lengths go in
/// rotation, experts fill up and are balanced by microbatch, and without a flush a
/// microbatch reads weights by its number.
bool depends_on_microbatches(const options& o, const run_plan& plan) {
  const auto& e = o.model.experts;
  constexpr std::int64_t rows = 1 << 20;
  const bool counts_rows =
    o.model.model == "moe" && (e.balance != 0 || e.capacity_of(rows) < rows);
  return counts_rows || o.schedules.uneven.lengths.size() > 1
         || !plan.sch.weights.flushes;
}

/// Samples of each microbatch of a batch; empty: numbers that differ by one at most.
std::vector<std::int64_t> uneven_sizes(const options& o, const batching& batches) {
  const batching even{batches.batch, batches.microbatches};
  std::vector<std::int64_t> usual;
  for (int k = 0; k < even.microbatches; ++k)
    usual.push_back(even.samples_of(k));
  const auto& sizes = o.schedules.uneven.samples;
  return sizes == usual ? std::vector<std::int64_t>{} : sizes;
}

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
  if (is_same("--data") && is_same("--evaluate-data") && is_same("--seed"))
    return {"restore that data, or name other data with --data", " and"};
  std::string differing;
  for (const char* option : {"--data", "--evaluate-data", "--seed"})
    if (!is_same(option))
      differing += (differing.empty() ? "" : " and ") + std::string{option};
  return {"leave " + differing + " out", ", or"};
}

} // namespace

std::map<std::string, std::string> options_of_training(const options& o,
                                                       const run_plan& plan) {
  auto result = options_to_save(o);
  const auto& optimizer = plan.work->optimizer;
  const bool sgd = optimizer.kind == optimizer_kind::sgd;
  result["--batch"] = std::to_string(plan.work->batch);
  result["--steps"] = std::to_string(plan.dims.batches_before + plan.dims.steps);
  result["--precision"] = o.run.products == precision::bf16 ? "bf16" : "fp32";
  if (makes_bf16_by_cpu(plan))
    result["TROUPE_BF16"] = paths_of(o.run.sums);
  result["--optimizer"] = sgd ? "sgd" : "adamw";
  result["--lr"] = text_of(optimizer.rate);
  result["--lr-schedule"] = text_of(optimizer.schedule);
  if (sgd) {
    result["--momentum"] = text_of(optimizer.momentum);
  } else {
    result["--betas"] = text_of(optimizer.beta1) + "," + text_of(optimizer.beta2);
    result["--eps"] = text_of(optimizer.epsilon);
  }
  result["--weight-decay"] = text_of(optimizer.weight_decay);
  result["--decay"] = optimizer.decay_only_matrices ? "matrices" : "all";
  result["--clip"] = text_of(optimizer.clip);
  if (optimizer.clip > 0)
    result["clip of"] = optimizer.scope == clip_scope::stage ? "stage" : "network";
  if (o.model.model == "moe") {
    result["--capacity"] = text_of(o.model.experts.capacity);
    result["--balance"] = text_of(o.model.experts.balance);
    result["--gate-noise"] = text_of(o.model.experts.noise);
  }
  result["--sequence-lengths"] = joined(o.schedules.uneven.lengths); // empty: --seq
  if (depends_on_microbatches(o, plan)) {
    const auto batches = plan.batches();
    result["--microbatches"] = std::to_string(batches.microbatches);
    result["--microbatch-sizes"] = joined(uneven_sizes(o, batches));
  }
  return result;
}

std::string other_network(const std::map<std::string, std::string>& recorded,
                          const std::map<std::string, std::string>& now) {
  const auto changeable = changeable_options();
  for (const auto& [option, had] : recorded) {
    const auto current = now.find(option);
    const bool is_of_data = option == "--data" || option == "--evaluate-data";
    if (current != now.end() && current->second != had && !is_of_data
        && std::ranges::find(changeable, option, &changeable_option::option)
             == changeable.end())
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
    const auto changeable = changeable_options();
    const auto known =
      std::ranges::find(changeable, option, &changeable_option::option);
    if (known != changeable.end() && !may_change(known->name))
      differences.add(std::string{known->name},
                      option + " " + (had.empty() ? "none" : had), current->second,
                      advice_on_option(option, had));
  }
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
