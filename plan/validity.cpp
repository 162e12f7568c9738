// SPDX-License-Identifier: BSD-3-Clause
#include "plan/validity.hpp"

#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "schedules/bounds.hpp"
#include "schedules/check.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace troupe {

namespace {

/// The facts that must hold before a rule can be evaluated. Each includes those before.
enum class premise : std::uint8_t {
  nothing,
  mesh,    ///< The mesh is valid.
  sizes,   ///< The sizes of the schedule are valid.
  earlier, ///< All earlier rules hold.
};

/// Returns a sentence if a plan breaks a rule; empty if the rule holds.
using plan_check =
  std::function<std::string(const run_plan& plan, const checked_machine& machine)>;

/// A row of the table of rules.
struct rule {
  const char* name;
  std::vector<std::string> options; ///< The options that can mend the plan.
  premise needs;
  plan_check error;
  /// The premise that does not hold where this rule is broken.
  premise establishes = premise::earlier;
};

/// The check of a rule that a plan breaks if `is_broken(plan)`.
template <class Condition, class Sentence>
plan_check when(Condition is_broken, Sentence sentence) {
  return
    [is_broken, sentence](const run_plan& plan, const checked_machine&) -> std::string {
      return is_broken(plan) ? sentence(plan) : "";
    };
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

bool updates_singly(const run_plan& plan) {
  return plan.mesh[axis::data] > 1 && plan.exchange->updates != update_by::all_replicas;
}

bool has_experts(const run_plan& plan) {
  return plan.work ? !plan.work->whole.experts.empty() : plan.mesh[axis::expert] > 1;
}

bool has_user_exchange(const run_plan& plan) {
  return plan.mesh[axis::data] > 1 && plan.user_exchange;
}

bool is_tied(const run_plan& plan) {
  return plan.work && plan.work->whole.tied();
}

/// True if the plan keeps state between batches, or continues from such state.
bool keeps_state(const run_plan& plan) {
  return plan.work && (plan.copies.pause_every() != 0 || plan.dims.batches_before != 0);
}

/// The options by which a plan keeps state, joined by "and". The premise is
/// keeps_state().
std::string options_of_state(const run_plan& plan) {
  std::string result;
  const auto add = [&](bool is_given, const char* option) {
    if (is_given)
      result += (result.empty() ? "" : " and ") + std::string{option};
  };
  add(plan.copies.checkpoint_every != 0, "--checkpoint");
  add(plan.dims.batches_before != 0, "--resume");
  add(plan.copies.keep_steps, "--keep-steps");
  return result;
}

bool updates_once_a_batch(const run_plan& plan) {
  return !plan.sch.local_rule()
         && update_size(plan.sch, plan.dims) == plan.dims.microbatches;
}

bool recomputes_blocks(const run_plan& plan) {
  return plan.recomputes() && plan.recomputed_units > 0;
}

std::vector<std::int64_t> samples_of(const run_plan& plan) {
  return plan.uneven ? plan.uneven->samples : std::vector<std::int64_t>{};
}

std::vector<std::int64_t> lengths_of(const run_plan& plan) {
  return plan.uneven ? plan.uneven->lengths : std::vector<std::int64_t>{};
}

bool has_sequences(const run_plan& plan) {
  return plan.work
         && (plan.work->whole.options.model == "gpt"
             || plan.work->whole.options.model == "moe");
}

std::int64_t sum_of(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

/// Numbers of the GPUs that the plan uses on the checked machine.
std::set<int> used_gpus(const run_plan& plan, const checked_machine& machine) {
  std::vector<processor> used;
  for (const int rank : machine.local_ranks.value_or(all_ranks(plan)))
    used.push_back(plan.machine.processor_of(rank));
  return gpus_among(used);
}

/// The memory of the checked machine.
machine_memory memory_of(const run_plan& plan, const checked_machine& machine) {
  return machine.memory ? *machine.memory
                        : memory_of_this_machine(used_gpus(plan, machine));
}

/// Returns an error if ranks cannot use the planned GPUs; empty if ranks can.
std::string error_of_gpus(const run_plan& plan, const checked_machine& machine) {
  const auto kind_of = [&](int gpu) {
    if (!machine.memory)
      return facts_of(processor{gpu}).kind;
    const auto known = machine.memory->gpus.find(gpu);
    return known == machine.memory->gpus.end() ? "" : known->second.kind;
  };
  const auto text = [&](int gpu) {
    return to_string(processor{gpu}) + " is " + kind_of(gpu);
  };
  std::optional<int> first; // of a known kind
  for (const int gpu : used_gpus(plan, machine)) {
    if (kind_of(gpu).empty())
      continue;
    if (first && kind_of(gpu) != kind_of(*first))
      return "--device names GPUs of two kinds, which round differently: "
             + text(*first) + ", and " + text(gpu);
    first = first.value_or(gpu);
  }
  return {};
}

std::string error_of_schedule(const run_plan& plan, const checked_machine&) {
  return validation_error(plan.sch, plan.dims, plan.mesh[axis::data]);
}

std::string error_of_program(const run_plan& plan, const checked_machine&) {
  const auto fault = check(plan.sch, settled(plan.sch, plan.dims));
  return fault ? plan.sch.name + ": " + to_string(*fault) : "";
}

constexpr std::int64_t most_microbatches = (1 << 30) - 1;

/// All rules, in the order in which a user should mend what is broken.
const std::vector<rule>& all_rules() {
  using enum premise;
  using plan_ref = const run_plan&;
  static const std::vector<rule> rules{
    {"mesh_has_ranks",
     {"--mesh"},
     nothing,
     when(
       [](plan_ref plan) {
         return plan.mesh[axis::data] < 1 || plan.mesh[axis::tensor] < 1
                || plan.mesh[axis::expert] < 1;
       },
       [](plan_ref) {
         return "--mesh has an axis below 1: each axis has at least 1 rank";
       }),
     mesh},
    {"replicas_have_an_exchange",
     {"--exchange"},
     nothing,
     when(
       [](plan_ref plan) { return plan.mesh[axis::data] > 1 && !plan.exchange; },
       [](plan_ref) {
         return "data replicas need an exchange: give an --exchange, for example ring";
       }),
     mesh},
    {"sizes_of_schedule",
     {"--stages", "--microbatches", "--schedules"},
     mesh,
     error_of_schedule,
     sizes},
    {"sizes_of_run",
     {"--steps", "--microbatches"},
     sizes,
     when(
       [](plan_ref plan) {
         return std::int64_t{plan.mesh[axis::data]} * plan.dims.total()
                > most_microbatches;
       },
       [](plan_ref) {
         return "--steps and --microbatches give too many microbatches: a run has at "
                "most 1,073,741,823 over all data replicas";
       }),
     sizes},

    // Exchanges between data replicas.
    {"user_exchange_sums",
     {"--mesh", "--exchange"},
     mesh,
     when(
       [](plan_ref plan) {
         return has_user_exchange(plan)
                && (!plan.work || plan.mesh[axis::tensor] > 1
                    || !exchanges_at_update(plan)
                    || plan.exchange->shares != shared_out::nothing);
       },
       [](plan_ref) {
         return "a user_exchange needs data replicas that each update all parameters: "
                "give tensor=1, and no other exchange";
       })},
    {"user_exchange_without_experts",
     {"--model", "--exchange"},
     mesh,
     when([](plan_ref plan) { return has_user_exchange(plan) && has_experts(plan); },
          [](plan_ref) {
            return "a user_exchange is between all data replicas, but an expert of moe "
                   "may serve only some replicas: train gpt, for example, or give an "
                   "exchange like ring";
          })},
    {"user_exchange_untied",
     {"--tied", "--exchange"},
     mesh,
     when([](plan_ref plan) { return has_user_exchange(plan) && is_tied(plan); },
          [](plan_ref) {
            return "a user_exchange sums the gradients of one stage, but a tied matrix "
                   "has gradients in two stages: train untied, or give an exchange "
                   "like ring";
          })},
    {"local_rule_updates_singly",
     {"--mesh", "--exchange", "--schedules"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.mesh[axis::data] > 1 && plan.sch.local_rule()
                && plan.exchange->updates == update_by::all_replicas;
       },
       [](plan_ref plan) {
         return plan.sch.name
                + "'s stages update at times of their own, and data replicas have no "
                  "common updates: give --mesh data=1, --exchange server:async or "
                  "hogwild, or another --schedule";
       })},
    {"local_rule_without_staleness",
     {"--exchange", "--schedules"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.mesh[axis::data] > 1 && plan.sch.local_rule()
                && plan.exchange->staleness.has_value();
       },
       [](plan_ref plan) {
         return plan.sch.name
                + "'s updates cannot wait for slower replicas, as a bound on staleness "
                  "demands: give --exchange server:async or hogwild, or another "
                  "--schedule";
       })},
    {"single_updates_without_shards",
     {"--mesh", "--exchange"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.mesh[axis::tensor] > 1 && updates_singly(plan);
       },
       [](plan_ref plan) {
         return plan.exchange->name
                + " may update tensor shards of a stage in different orders, and "
                  "common parameters would differ: give --mesh tensor=1, or another "
                  "--exchange";
       })},
    {"local_rule_without_shards",
     {"--mesh", "--schedules"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.mesh[axis::tensor] > 1 && plan.sch.local_rule();
       },
       [](plan_ref plan) {
         return plan.sch.name
                + "'s ranks choose among inputs that have arrived, and tensor "
                  "shards could choose differently: give --mesh tensor=1, or "
                  "another --schedule";
       })},

    // Experts.
    {"expert_groups_of_equal_size",
     {"--mesh"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.mesh[axis::data] % plan.mesh[axis::expert] != 0;
       },
       [](plan_ref plan) {
         return "expert=" + number(plan.mesh[axis::expert])
                + " does not divide data=" + number(plan.mesh[axis::data])
                + ": change expert= or data= in --mesh, as experts are spread over "
                  "groups of equal size";
       })},
    {"experts_exist",
     {"--model", "--mesh"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.work && plan.mesh[axis::expert] > 1
                && plan.work->whole.experts.empty();
       },
       [](plan_ref plan) {
         return "expert=" + number(plan.mesh[axis::expert])
                + " in --mesh spreads experts, which only moe has: say --model moe, or "
                  "leave expert= out";
       })},
    // Replicas round sums of an expert's copies apart from sums of other parameters.
    {"encoded_experts_have_one_copy",
     {"--compress", "--mesh"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.mesh[axis::expert] > 1
                && plan.mesh[axis::data] > plan.mesh[axis::expert] && plan.exchange
                && plan.exchange->compression != &fp32_codec();
       },
       [](plan_ref plan) {
         return "--compress does not go with experts that are spread and have several "
                "copies: say --compress none, or expert="
                + number(plan.mesh[axis::data]) + " or expert=1 in --mesh";
       })},
    {"experts_divide",
     {"--experts", "--mesh"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.work && has_experts(plan)
                && plan.work->experts.count % plan.mesh[axis::expert] != 0;
       },
       [](plan_ref plan) {
         return number(plan.work->experts.count) + " experts cannot be spread over "
                + number(plan.mesh[axis::expert])
                + " data replicas in equal numbers: change --experts, or expert= in "
                  "--mesh";
       })},
    {"experts_without_shards",
     {"--mesh"},
     mesh,
     when(
       [](plan_ref plan) { return has_experts(plan) && plan.mesh[axis::tensor] > 1; },
       [](plan_ref) {
         return "a network with experts cannot be cut into tensor shards: give "
                "--mesh tensor=1";
       })},
    {"experts_have_whole_gradients",
     {"--exchange"},
     mesh,
     when(
       [](plan_ref plan) {
         return has_experts(plan) && shares_out(plan, shared_out::gradients);
       },
       [](plan_ref plan) {
         return plan.exchange->name
                + " keeps in each stage only a share of its gradients"
                + (shares_out(plan, shared_out::parameters) ? " and parameters" : "")
                + ", but an expert needs all gradients: give another --exchange, for "
                  "example ring, zero1 or server";
       })},
    {"experts_update_together",
     {"--exchange"},
     mesh,
     when([](plan_ref plan) { return has_experts(plan) && updates_singly(plan); },
          [](plan_ref plan) {
            return plan.exchange->name
                   + " updates data replicas one by one, but an expert serves several "
                     "replicas: give an --exchange that sums, for example ring";
          })},

    // Recomputation.
    {"blocks_of_recomputation",
     {"--recompute"},
     mesh,
     when([](plan_ref plan) { return plan.recomputed_units < 0; },
          [](plan_ref) {
            return "--recompute blocks= is below 1: a stage recomputes at least 1 "
                   "block or layer at once";
          })},
    {"blocks_with_whole_gradients",
     {"--recompute", "--exchange"},
     mesh,
     when(
       [](plan_ref plan) {
         return recomputes_blocks(plan) && shares_out(plan, shared_out::gradients);
       },
       [](plan_ref plan) {
         return plan.exchange->name
                + " gathers and sums layers one after another, which --recompute "
                  "blocks= does not allow: say --recompute stage, or give another "
                  "--exchange";
       })},
    {"blocks_of_known_layers",
     {"--cost", "--recompute"},
     mesh,
     when(
       [](plan_ref plan) {
         return recomputes_blocks(plan) && !plan.work
                && plan.work.simulated().buckets == 1;
       },
       [](plan_ref) {
         return "--recompute blocks= needs the number of a stage's layers: say --cost "
                "buckets=8 for 8 layers, for example, or --recompute stage";
       })},

    // Uneven microbatches.
    {"a_size_for_each_microbatch",
     {"--microbatch-sizes", "--microbatches"},
     sizes,
     when(
       [](plan_ref plan) {
         const auto samples = samples_of(plan);
         return !samples.empty() && std::ssize(samples) != plan.batches().microbatches;
       },
       [](plan_ref plan) {
         return "a batch has " + number(plan.batches().microbatches)
                + " microbatches, but " + number(std::ssize(samples_of(plan)))
                + " sizes: give --microbatch-sizes a size for each microbatch";
       })},
    {"a_sample_in_each_microbatch",
     {"--microbatch-sizes"},
     mesh,
     when(
       [](plan_ref plan) {
         const auto samples = samples_of(plan);
         return !samples.empty() && std::ranges::min(samples) < 1;
       },
       [](plan_ref) {
         return "--microbatch-sizes has a size below 1: each microbatch has at least 1 "
                "sample";
       })},
    {"at_most_a_length_for_each_microbatch",
     {"--sequence-lengths", "--microbatches"},
     sizes,
     when(
       [](plan_ref plan) {
         return std::ssize(lengths_of(plan)) > plan.batches().microbatches;
       },
       [](plan_ref plan) {
         return "a batch has " + number(plan.batches().microbatches)
                + " microbatches, but " + number(std::ssize(lengths_of(plan)))
                + " lengths: give --sequence-lengths at most a length for each "
                  "microbatch";
       })},
    {"a_token_in_each_sequence",
     {"--sequence-lengths"},
     mesh,
     when(
       [](plan_ref plan) {
         const auto lengths = lengths_of(plan);
         return !lengths.empty() && std::ranges::min(lengths) < 1;
       },
       [](plan_ref) {
         return "--sequence-lengths has a length below 1: a sequence has at least 1 "
                "token";
       })},
    {"samples_add_up_to_the_batch",
     {"--microbatch-sizes", "--batch"},
     mesh,
     when(
       [](plan_ref plan) {
         const auto samples = samples_of(plan);
         return plan.work && !samples.empty() && sum_of(samples) != plan.work->batch;
       },
       [](plan_ref plan) {
         return "--microbatch-sizes adds up to " + number(sum_of(samples_of(plan)))
                + " samples, but --batch has " + number(plan.work->batch);
       })},
    {"lengths_of_sequences",
     {"--model", "--sequence-lengths"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.work && !lengths_of(plan).empty() && !has_sequences(plan);
       },
       [](plan_ref) {
         return "--sequence-lengths applies only to gpt and moe: say --model gpt or "
                "moe, or leave --sequence-lengths out";
       })},
    {"lengths_within_the_model",
     {"--seq", "--sequence-lengths"},
     mesh,
     when(
       [](plan_ref plan) {
         const auto lengths = lengths_of(plan);
         return has_sequences(plan) && !lengths.empty()
                && std::ranges::max(lengths) > plan.work->whole.rows;
       },
       [](plan_ref plan) {
         const auto longest = number(std::ranges::max(lengths_of(plan)));
         return "a sequence of " + longest
                + " tokens in --sequence-lengths is longer than --seq: say --seq "
                + longest;
       })},
    {"lengths_of_whole_shards",
     {"--sequence-lengths", "--mesh", "--sequence-parallel"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.work && plan.sequence_parallel
                && std::ranges::any_of(lengths_of(plan), [&](std::int64_t length) {
                     return length % plan.mesh[axis::tensor] != 0;
                   });
       },
       [](plan_ref plan) {
         return "--sequence-parallel divides positions between tensor shards: give "
                "--sequence-lengths that are multiples of tensor="
                + number(plan.mesh[axis::tensor]);
       })},

    // Tied matrices.
    {"tied_ends_update_together",
     {"--schedules", "--tied"},
     sizes,
     when(
       [](plan_ref plan) {
         // The update t of all stages is of batch t, and makes version t of all.
         return is_tied(plan)
                && (!updates_once_a_batch(plan)
                    || version_read(plan.sch, plan.dims, 0, plan.dims.total() - 1)
                         != version_read(plan.sch, plan.dims, plan.dims.stages - 1,
                                         plan.dims.total() - 1));
       },
       [](plan_ref plan) {
         return plan.sch.name
                + "'s first and last stage update at different times, and would differ "
                  "in a tied matrix: give a flush schedule or 2bw, or leave --tied out";
       })},
    {"tied_ends_of_all_replicas",
     {"--exchange", "--tied"},
     mesh,
     when([](plan_ref plan) { return is_tied(plan) && updates_singly(plan); },
          [](plan_ref plan) {
            return plan.exchange->name
                   + " updates data replicas one by one, and the two copies of a tied "
                     "matrix would differ: give --exchange ring, for example, or leave "
                     "--tied out";
          })},
    {"tied_ends_of_one_norm",
     {"--clip", "--schedules", "--tied"},
     mesh,
     when(
       [](plan_ref plan) {
         return is_tied(plan) && plan.work->optimizer.clip > 0
                && plan.work->optimizer.scope == clip_scope::stage;
       },
       [](plan_ref) {
         return "clip=stage would clip the two copies of a tied matrix differently: "
                "leave clip=stage or --tied out";
       })},

    // Checkpoints and kept steps.
    {"kept_steps_have_replicas",
     {"--mesh", "--keep-steps"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.work && plan.copies.keep_steps
                && plan.mesh[axis::data] / plan.mesh[axis::expert] < 2;
       },
       [](plan_ref plan) {
         return "--keep-steps needs copies of other data replicas: say --mesh data="
                + number(2 * plan.mesh[axis::expert])
                + " or more too, or leave --keep-steps out";
       })},
    {"kept_steps_of_whole_state",
     {"--exchange", "--keep-steps"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.work && plan.copies.keep_steps && state_shares(plan) > 1;
       },
       [](plan_ref plan) {
         return "--keep-steps needs copies of the optimizer's state, but under "
                + plan.exchange->name
                + " no two data replicas have the same share: give --exchange ring, "
                  "for example, or leave --keep-steps out";
       })},
    {"checkpoints_of_one_network",
     {"--checkpoint", "--resume", "--keep-steps", "--exchange"},
     mesh,
     when(
       [](plan_ref plan) {
         return keeps_state(plan) && plan.mesh[axis::data] > 1 && !replicas_agree(plan);
       },
       [](plan_ref plan) {
         return plan.exchange->name
                + " updates data replicas one by one, and no common network can be "
                + (plan.copies.pause_every() != 0 ? "saved" : "resumed") + ": leave "
                + options_of_state(plan)
                + " out, or give --exchange ring or server, for example";
       })},
    {"checkpoints_of_tied_versions",
     {"--schedules", "--tied"},
     mesh,
     when(
       [](plan_ref plan) {
         return keeps_state(plan) && is_tied(plan) && plan.sch.asynchronous()
                && plan.sch.update_every > 0;
       },
       [](plan_ref plan) {
         return plan.sch.name
                + " has two versions of a tied matrix at once, and a checkpoint stores "
                  "one: name a flush schedule or 2bw, or leave --tied or "
                + options_of_state(plan) + " out";
       })},
    {"checkpoints_after_updates",
     {"--checkpoint-every", "--keep-steps"},
     sizes,
     when(
       [](plan_ref plan) {
         return keeps_state(plan) && !plan.sch.local_rule()
                && std::int64_t{plan.copies.pause_every()} * plan.dims.microbatches
                       % update_size(plan.sch, plan.dims)
                     != 0;
       },
       [](plan_ref plan) {
         const int size = update_size(plan.sch, plan.dims);
         return plan.sch.name + " updates every " + number(size)
                + " microbatches, and batches of " + number(plan.dims.microbatches)
                + " can end within an update: "
                + (plan.copies.keep_steps ? "leave --keep-steps out, and " : "")
                + "say --checkpoint-every "
                + number(std::lcm(size, plan.dims.microbatches)
                         / plan.dims.microbatches)
                + " or a multiple";
       })},

    // The batch.
    {"samples_for_all_microbatches",
     {"--batch", "--microbatches"},
     sizes,
     when(
       [](plan_ref plan) {
         return plan.work && plan.work->batch < plan.batches().microbatches;
       },
       [](plan_ref plan) {
         return "a batch of " + number(plan.work->batch)
                + " samples cannot be cut into " + number(plan.batches().microbatches)
                + " microbatches of at least one sample: give a larger --batch or "
                  "fewer "
                  "--microbatches";
       })},
    {"samples_of_a_batch",
     {"--batch"},
     mesh,
     when(
       [](plan_ref plan) {
         return plan.work
                && plan.work->batch > std::numeric_limits<std::int32_t>::max();
       },
       [](plan_ref) {
         return "--batch is too large: a batch has at most 2,147,483,647 samples";
       })},
    {"bytes_that_can_be_counted",
     {"--batch", "--layers", "--d-model"},
     earlier,
     [](const run_plan& plan, const checked_machine&) {
       return plan.work ? check_size(plan) : "";
     }},
    {"clipping_of_whole_updates",
     {"--schedules", "--clip"},
     sizes,
     when(
       [](plan_ref plan) {
         return plan.work && plan.work->optimizer.clip > 0
                && plan.work->optimizer.scope == clip_scope::network
                && !updates_once_a_batch(plan);
       },
       [](plan_ref plan) {
         const bool has_parameters = plan.sch.name.find(':') != std::string::npos;
         return plan.sch.name
                + " never has all gradients of an update at once, and cannot clip by "
                  "the norm of all stages: say "
                + plan.sch.name + (has_parameters ? "," : ":")
                + "clip=stage to clip stage by stage";
       })},

    // Programs, GPUs and memory.
    {"memory_of_actors",
     {"--stages", "--mesh", "--microbatches"},
     earlier,
     [](const run_plan& plan, const checked_machine& machine) {
       return check_memory_of_actors(plan, machine.memory ? machine.memory->host
                                                          : memory_of_process());
     }},
    // Stashes can be counted only of programs that are right.
    {"program", {"--schedules"}, earlier, error_of_program},
    {"gpus_of_one_kind", {"--device"}, earlier, error_of_gpus},
    {"memory_of_training",
     {"--batch", "--microbatches", "--stages", "--mesh", "--recompute"},
     earlier,
     [](const run_plan& plan, const checked_machine& machine) {
       return plan.work ? check_memory_of_training(plan, machine.count_caller_bytes,
                                                   machine.local_ranks,
                                                   memory_of(plan, machine))
                        : "";
     }},
  };
  return rules;
}

/// Calls `on_broken(rule, sentence)` for each broken rule, until the result is false.
template <class Callback>
void for_each_broken(const run_plan& plan, const checked_machine& machine,
                     const Callback& on_broken) {
  std::optional<premise> lost;
  for (const auto& row : all_rules()) {
    if (lost && row.needs >= *lost)
      continue;
    auto sentence = row.error(plan, machine);
    if (sentence.empty())
      continue;
    lost = std::min(lost.value_or(premise::earlier), row.establishes);
    if (!on_broken(row, std::move(sentence)))
      return;
  }
}

} // namespace

std::vector<broken_rule> broken_rules(const run_plan& plan,
                                      const checked_machine& machine) {
  std::vector<broken_rule> result;
  for_each_broken(plan, machine, [&](const rule& row, std::string sentence) {
    result.push_back({row.name, std::move(sentence), row.options});
    return true;
  });
  return result;
}

std::string validation_error(const run_plan& plan,
                             const caller_bytes_counter& count_caller_bytes,
                             const std::optional<std::vector<int>>& local_ranks) {
  std::string result;
  for_each_broken(plan, {count_caller_bytes, local_ranks},
                  [&](const rule&, std::string sentence) {
                    result = std::move(sentence);
                    return false;
                  });
  return result;
}

} // namespace troupe
