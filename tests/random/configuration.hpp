// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

/// A random configuration of a run, as a user would type it after `verify`. Models are
/// tiny, but every kind of mesh, schedule, exchange, optimizer and clock occurs. One in
/// twenty configurations combines options without regard to validity, and may be
/// refused.
class random_configuration {
public:
  /// \param number of the configuration among the configurations of a seed
  random_configuration(std::uint64_t seed, std::uint64_t number) {
    std::seed_seq both{seed, number};
    random_.seed(both);
    careless_ = one_in(20);
    choose_model();
    choose_mesh();
    choose_schedule();
    choose_sizes();
    choose_optimizer();
    choose_tie();
    choose_clock();
    if (one_in(4))
      say("--precision", "bf16");
    say("--seed", below(1000));
    say("--quiet");
  }

  /// The words after `verify` on the command line.
  const std::vector<std::string>& words() const { return words_; }

  // The schedule of the run, without the optimizer's options.
  const std::string& schedule() const { return schedule_; }
  const std::map<std::string, std::string>& parameters() const { return parameters_; }
  int ranks() const { return stages_; }
  int microbatches() const { return microbatches_; } // of a data replica
  int steps() const { return steps_; }

private:
  // -- random numbers: the same on every machine

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  int from_to(int first, int last) { return first + below(last - first + 1); }
  bool one_in(int n) { return below(n) == 0; }

  template <class Value>
  Value any_of(std::vector<Value> values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

  std::string name_of(std::vector<std::string> names) {
    return any_of(std::move(names));
  }

  // -- words

  void say(const std::string& option) { words_.push_back(option); }
  void say(const std::string& option, const std::string& value) {
    words_.push_back(option);
    words_.push_back(value);
  }
  void say(const std::string& option, int value) { say(option, std::to_string(value)); }

  // -- choices

  void choose_model() {
    model_ =
      name_of({"gpt", "gpt", "gpt", "gpt", "moe", "moe", "mlp", "lenet", "lenet5"});
    say("--model", model_);
    units_ = model_.starts_with("lenet")
               ? 5
               : from_to(model_ == "moe" && !careless_ ? 2 : 1, 6);
    if (model_.starts_with("lenet"))
      return;
    say("--layers", units_);
    if (model_ == "mlp")
      return say("--d-model", from_to(1, 12));
    if (model_ == "gpt" && one_in(3))
      tensor_ = from_to(2, 4);
    heads_ = careless_ ? from_to(1, 6) : tensor_ * from_to(1, tensor_ > 2 ? 1 : 3);
    length_ = from_to(1, 8);
    say("--heads", heads_);
    say("--d-model", heads_ * any_of<int>({2, 4, 6}));
    say("--vocab", from_to(4, 21));
    if (model_ == "moe")
      choose_experts();
  }

  void choose_experts() {
    experts_ = from_to(1, 6);
    say("--experts", experts_);
    say("--gate", experts_ > 1 ? name_of({"switch", "gshard"}) : "switch");
    if (one_in(2))
      say("--capacity", name_of({"0.5", "1", "1.1", "4"}));
    if (one_in(2))
      say("--balance", name_of({"0", "0.1"}));
    if (one_in(2))
      say("--gate-noise", name_of({"0.1", "1"}));
    if (one_in(3))
      say("--shared-expert");
  }

  void choose_mesh() {
    stages_ = from_to(1, std::min(units_, 5));
    data_ = one_in(2) ? 1 : from_to(2, 5);
    if (model_ == "moe" && one_in(2)) // the greatest common divisor
      for (int e = 1; e <= data_; ++e)
        if (careless_ || (data_ % e == 0 && experts_ % e == 0))
          expert_ = e;
    std::string mesh = "pipe=" + std::to_string(stages_);
    if (data_ > 1)
      mesh += ",data=" + std::to_string(data_);
    if (tensor_ > 1)
      mesh += ",tensor=" + std::to_string(tensor_);
    if (expert_ > 1)
      mesh += ",expert=" + std::to_string(expert_);
    say("--mesh", mesh);
    if (tensor_ > 1 && one_in(2)) {
      by_sequence_ = true;
      say("--sequence-parallel");
      length_ = tensor_ * from_to(1, 3);
    }
    if (model_ == "gpt" || model_ == "moe")
      say("--seq", length_);
  }

  /// Chooses an exchange that fits the mesh. Local rules, which choose by arrivals,
  /// have no common updates of all data replicas.
  void choose_exchange(bool local_rule) {
    std::vector<std::string> all{"naive",   "tree",  "ring",  "ring",
                                 "halving", "zero1", "zero1", "server"};
    const std::vector<std::string> apart{"server:async", "hogwild"};
    if (model_ != "moe" || careless_)
      all.insert(all.end(), {"zero2", "zero3"});
    if (careless_ || (model_ != "moe" && tensor_ == 1)) {
      all.insert(all.end(), apart.begin(), apart.end());
      all.push_back("server:staleness=" + std::to_string(below(4)));
    }
    exchange_ = any_of(local_rule && !careless_ ? apart : all);
    if (data_ > 1)
      say("--exchange", exchange_);
    const bool sums =
      exchange_.find(':') == std::string::npos && exchange_ != "hogwild";
    const bool has_one_copy = expert_ == 1 || expert_ == data_;
    if (((data_ > 1 && sums && has_one_copy) || careless_) && one_in(4))
      say("--compress", "bf16");
  }

  void choose_schedule() {
    std::vector<std::string> all{"naive", "gpipe",     "1f1b",
                                 "2bw",   "pipedream", "pipedream"};
    if (careless_ || (tensor_ == 1 && (data_ == 1 || model_ != "moe")))
      all.insert(all.end(), {"ampnet", "ampnet"});
    if (careless_ || stages_ % 2 == 0)
      all.insert(all.end(), {"chimera", "chimera", "dualpipe"});
    all.insert(all.end(), {"zb-h1", "zb-h2", "zb-auto"});
    if (careless_ || 2 * stages_ <= units_)
      all.insert(all.end(), {"interleaved", "looped_bfs", "zb-v", "v-half", "v-min",
                             "hanayo", "dualpipev"});
    schedule_ = any_of(all);
    for (const char* two : {"interleaved", "looped_bfs", "zb-v", "v-half", "v-min",
                            "hanayo", "dualpipev"})
      stages_a_rank_ = schedule_ == two ? 2 : stages_a_rank_;
    choose_exchange(schedule_ == "ampnet");
    const auto number = [](int value) { return std::to_string(value); };
    if (schedule_ == "pipedream" && one_in(2))
      parameters_["update_every"] = number(from_to(1, 5));
    if (schedule_ == "pipedream" && one_in(2))
      parameters_["vertical_sync"] = "on";
    if (schedule_ == "ampnet" && one_in(2))
      parameters_["max_active_keys"] = number(from_to(1, 9));
    if (schedule_ == "ampnet" && !one_in(3))
      parameters_["min_update_frequency"] = number(from_to(1, 7));
    choose_places();
    for (const auto& [key, value] : parameters_)
      own_.push_back(key + "=" + value);
  }

  /// Chooses other numbers of stages a rank, and of pipelines, than the default.
  void choose_places() {
    const int most = careless_ ? 5 : units_ / stages_;
    const bool loops = schedule_ == "interleaved" || schedule_ == "looped_bfs";
    if (loops && one_in(2)) {
      stages_a_rank_ = from_to(1, most);
      parameters_["v"] = std::to_string(stages_a_rank_);
    }
    if (schedule_ == "hanayo" && most >= 4 && one_in(2)) {
      stages_a_rank_ = 4;
      parameters_["waves"] = "2";
    }
    if (schedule_ == "chimera" && (careless_ || stages_ == 4) && one_in(2))
      parameters_["pairs"] = "2";
    if (schedule_ == "chimera" && (careless_ || !parameters_.contains("pairs"))
        && one_in(2))
      parameters_["forward_doubling"] = "on";
    if (schedule_ == "chimera" && one_in(2))
      parameters_["eager"] = "off";
  }

  void choose_sizes() {
    int microbatches = from_to(1, 6);
    if (schedule_ == "chimera" && !careless_)
      microbatches +=
        parameters_.contains("pairs") ? 4 - microbatches % 4 : microbatches % 2;
    if (schedule_ == "2bw" && !careless_)
      microbatches = std::max(microbatches, stages_);
    if (schedule_.starts_with("dualpipe") && !careless_)
      microbatches = 2 * std::max(microbatches, stages_);
    microbatches_ = microbatches;
    batch_ = microbatches * data_ + below(microbatches * data_ + 1);
    steps_ = from_to(1, 6);
    say("--microbatches", microbatches * data_);
    choose_unevenness(microbatches * data_);
    say("--batch", batch_);
    say("--steps", steps_);
    if (one_in(3) && !model_.starts_with("lenet"))
      choose_split();
    choose_recomputation();
  }

  /// Chooses sizes of microbatches, and lengths of sequences.
  void choose_unevenness(int microbatches) {
    std::string sizes, lengths;
    if (one_in(5)) {
      batch_ = 0;
      for (int k = 0; k < microbatches; ++k) {
        const int size = from_to(1, 3);
        batch_ += size;
        sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
      }
      say("--microbatch-sizes", sizes);
    }
    if (!one_in(5) || (model_ != "gpt" && model_ != "moe" && !careless_))
      return;
    const int step = by_sequence_ ? tensor_ : 1;
    for (int k = from_to(1, microbatches); k > 0; --k)
      lengths += (lengths.empty() ? "" : ",")
                 + std::to_string(step * from_to(1, std::max(length_ / step, 1)));
    say("--sequence-lengths", lengths);
  }

  void choose_recomputation() {
    if (!one_in(3) || (schedule_ == "ampnet" && !careless_))
      return;
    const bool in_blocks =
      one_in(2) && (careless_ || (exchange_ != "zero2" && exchange_ != "zero3"));
    say("--recompute", (in_blocks ? "blocks=" + std::to_string(from_to(1, 3)) : "stage")
                         + (one_in(2) ? ",ahead" : ""));
  }

  /// Chooses the number of units of each stage, at least one each.
  void choose_split() {
    const int stages = stages_ * stages_a_rank_;
    std::vector<int> sizes(static_cast<std::size_t>(stages), 1);
    for (int rest = units_ - stages; rest > 0; --rest)
      ++sizes[static_cast<std::size_t>(below(stages))];
    std::string text;
    for (const int size : sizes)
      text += (text.empty() ? "" : ",") + std::to_string(size);
    say("--split", text);
  }

  void choose_optimizer() {
    const bool sgd = one_in(2), nadam = !sgd && one_in(3);
    say("--optimizer", sgd     ? "sgd"
                       : nadam ? name_of({"nadam", "nadam:momentum_decay=0.5"})
                               : "adamw");
    say("--lr",
        sgd ? name_of({"0.01", "0.03"}) : name_of({"0.0003", "0.001", "0.003"}));
    if (sgd && one_in(2))
      say("--momentum", name_of({"0.5", "0.9"}));
    if (!sgd && one_in(3))
      say("--betas", name_of({"0.8,0.95", "0,0.9", "0.9,0.99"}));
    if (!sgd && one_in(3))
      say("--eps", name_of({"1e-6", "1e-3"}));
    const bool decays = one_in(2);
    if (decays)
      say("--weight-decay", name_of({"0.01", "0.1", "0.5"}));
    if ((decays || (!sgd && !nadam) || careless_) && one_in(3))
      say("--decay", "matrices");
    if (one_in(2))
      choose_rates();
    if (one_in(2)) {
      say("--clip", name_of({"0.01", "0.1", "1"}));
      const bool has_network_norm = schedule_ != "pipedream" && schedule_ != "ampnet";
      if ((!has_network_norm && !careless_) || one_in(3))
        own_.push_back("clip=stage");
    }
    std::string text = schedule_;
    for (const auto& part : own_)
      text += (text == schedule_ ? ":" : ",") + part;
    say("--schedule", text);
  }

  void choose_rates() {
    const bool cosine = one_in(2);
    std::string text = cosine ? "cosine" : "constant";
    if (one_in(2))
      text += ",warmup=" + std::to_string(below(batch_ * steps_ + 2));
    if (cosine && one_in(2))
      text += ",floor=" + name_of({"0.1", "0.5"});
    say("--lr-schedule", text);
  }

  /// May tie the matrices, if both ends of the tied matrix make common updates from all
  /// gradients.
  void choose_tie() {
    const bool has_words = model_ == "gpt" || model_ == "moe";
    const bool together = schedule_ != "pipedream" && schedule_ != "ampnet"
                          && !exchange_.starts_with("server:") && exchange_ != "hogwild"
                          && std::ranges::count(own_, "clip=stage") == 0;
    if (has_words && (together || careless_) && one_in(3))
      say("--tied");
  }

  void choose_clock() {
    if (one_in(2) && (careless_ || exchange_ != "hogwild")) {
      say("--clock", "real");
      return say("--threads", from_to(1, 3));
    }
    say("--clock", "virtual");
    const int ranks = stages_ * data_ * tensor_;
    if (ranks > 1 && one_in(4))
      say("--machines", "ranks=" + std::to_string(from_to(1, std::min(ranks - 1, 3)))
                          + ",latency=" + name_of({"0", "0.4", "5"})
                          + (one_in(2) ? ",bandwidth=" + name_of({"1e4", "1e6"}) : ""));
    if (one_in(4))
      return; // by operations
    std::string cost = "F=" + values_a_stage() + ",B=" + values_a_stage();
    if (one_in(2))
      cost += ",U=" + values_a_stage();
    if (ranks > 1 && one_in(2))
      cost += ",latency=" + name_of({"0.1", "0.7", "3"});
    if (ranks > 1 && one_in(2))
      cost += ",bandwidth=" + name_of({"1e5", "1e6"});
    if (data_ > 1 && one_in(2)) {
      cost += ",replica=1";
      for (int d = 1; d < data_; ++d)
        cost += "/" + name_of({"1", "1.3", "2.5"});
    }
    say("--cost", cost);
  }

  std::string values_a_stage() {
    const auto value = [&] { return name_of({"0.5", "1", "1.7", "2", "3"}); };
    auto result = value();
    if (one_in(2))
      for (int s = 1; s < stages_; ++s)
        result += "/" + value();
    return result;
  }

  std::mt19937_64 random_;
  bool careless_ = false;
  std::vector<std::string> words_;
  std::string model_, schedule_, exchange_;
  std::vector<std::string> own_; // parameters and options of the schedule
  int units_ = 1, heads_ = 1, length_ = 1, experts_ = 1, stages_a_rank_ = 1;
  bool by_sequence_ = false;
  int stages_ = 1, data_ = 1, tensor_ = 1, expert_ = 1;
  std::map<std::string, std::string> parameters_; // of the schedule
  int batch_ = 1, microbatches_ = 1, steps_ = 1;
};
