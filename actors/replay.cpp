#include "actors/replay.hpp"

#include "actors/recorder.hpp"
#include "actors/replayed_exchange.hpp"
#include "messaging/sum_in_order.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <stdexcept>

namespace troupe {

namespace {

using values = std::vector<float>;
using buckets = std::vector<values>;

/// One replica of one stage, at a place in what it did.
struct replayed_stage {
  position where;
  slice<float> layers;
  std::vector<sample> todo;
  std::size_t next = 0;
  std::map<int, buckets> versions;
  buckets sum;
  std::vector<buckets> by_microbatch; // where data replicas sum each by itself
  int summed = 0;
  std::int64_t samples = 0;

  bool over() const { return next == todo.size(); }
  const sample& now() const { return todo[next]; }

  /// Drops the versions that nothing to come reads.
  void forget() {
    std::erase_if(versions, [this](const auto& v) {
      return v.first != versions.rbegin()->first
             && std::none_of(todo.begin() + static_cast<std::ptrdiff_t>(next),
                             todo.end(), [&](const sample& s) {
                               return s.what.what != op::update && s.version == v.first;
                             });
    });
  }
};

/// What one stage keeps of one microbatch.
struct kept {
  values input, stash, kept_gradients, from_above;
  std::vector<std::int32_t> tokens;
};

class replaying {
public:
  replaying(const run_plan& plan, const record& ran, const shared_history& accesses)
    : plan_(plan), work_(*plan.work), log_(plan), threads_(1) {
    const auto slices = slice<float>::cut_at(work_.whole, work_.first_layers, 1);
    const int directions = replicas_of(plan.sch.where);
    for (int replica = 0; replica < plan.replicas(); ++replica)
      for (int s = 0; s < plan.dims.stages; ++s)
        add_stage({replica / directions, replica % directions, s},
                  slices[static_cast<std::size_t>(s)], ran);
    for (int s = 0; s < plan.dims.stages; ++s)
      add_optimizer(slices[static_cast<std::size_t>(s)]);
    if (!plan.updates_are_by(update_by::all))
      for (int s = 0; s < plan.dims.stages; ++s)
        add_exchange(s, accesses);
  }

  trained run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& stage : stages_)
        while (!stage.over() && step(stage))
          moved = true;
    }
    for (const auto& stage : stages_)
      if (!stage.over())
        throw std::logic_error("the record stops making sense at "
                               + to_string(stage.now().what, true));
    for (const auto& exchange : exchanges_)
      if (!exchange.over())
        throw std::logic_error("the record has updates that nobody made");
    trained result;
    result.loss = log_.losses();
    for (int s = 0; s < plan_.dims.stages; ++s) {
      auto& stage = stages_[static_cast<std::size_t>(s)];
      const auto& last = exchanges_.empty()
                           ? stage.versions.rbegin()->second
                           : exchanges_[static_cast<std::size_t>(s)].parameters();
      for (const auto& bucket : last)
        result.parameters.push_back(bucket);
      for (auto& bucket : stage.sum)
        result.gradients.push_back(std::move(bucket));
    }
    return result;
  }

private:
  void add_stage(position where, const slice<float>& layers, const record& ran) {
    replayed_stage stage{where, layers};
    for (const auto& s : ran[static_cast<std::size_t>(plan_.rank_of(where))])
      if (hosted_stage{s.what.replica, s.what.stage} == where.hosted() && !s.part)
        stage.todo.push_back(s);
    auto& initial = stage.versions[0];
    const auto first = static_cast<std::size_t>(
      work_.first_layers[static_cast<std::size_t>(where.stage)]);
    for (std::size_t i = 0; i < layers.layers().size(); ++i) {
      const auto size = static_cast<std::size_t>(layers.layers()[i]->bucket());
      stage.sum.emplace_back(size);
      work_.weights(first + i, initial.emplace_back(size).data());
    }
    stages_.push_back(std::move(stage));
  }

  void add_optimizer(const slice<float>& layers) {
    optimizers_.emplace_back(work_.optimizer, layers.layers(),
                             work_.batch * plan_.dims.steps, account_);
  }

  void add_exchange(int s, const shared_history& accesses) {
    const auto stages = static_cast<std::size_t>(plan_.dims.stages);
    const auto shares = static_cast<std::size_t>(plan_.state_share_of({}).count);
    std::vector<std::vector<shared_access>> histories;
    for (std::size_t i = 0; i < shares; ++i)
      histories.push_back(accesses.at(i * stages + static_cast<std::size_t>(s)));
    const auto& stage = stage_at(0, s);
    exchanges_.emplace_back(plan_, stage.layers.layers(), stage.versions.at(0),
                            std::move(histories));
  }

  replayed_stage& stage_at(int replica, int stage) {
    return stages_[static_cast<std::size_t>(replica * plan_.dims.stages + stage)];
  }

  /// What a stage keeps of a microbatch, counted over those of all data replicas.
  kept& of(int stage, int microbatch) { return kept_[{stage, microbatch}]; }

  /// Does the next thing of a stage; false if its input is not there yet.
  bool step(replayed_stage& stage) {
    const auto& s = stage.now();
    const auto& a = s.what;
    if (a.what == op::update)
      return update(stage);
    const int n = plan_.microbatch_of_all(stage.where.data, a.microbatch);
    auto& k = of(a.stage, n);
    if (a.what == op::forward && stage.layers.is_first() && k.tokens.empty())
      read(n);
    if (a.what == op::forward && k.input.empty())
      return false;
    if (a.what != op::forward && !stage.layers.is_last() && k.from_above.empty())
      return false;
    compute(stage, s, n);
    ++stage.next;
    stage.forget();
    return true;
  }

  void read(int microbatch) {
    auto& first = of(0, microbatch);
    auto& last = labels_[microbatch];
    const auto samples = plan_.batches().samples_of(microbatch);
    const auto input = work_.whole.layers.front()->input(), rows = work_.whole.rows;
    first.tokens.resize(static_cast<std::size_t>(samples * input));
    first.input.resize(static_cast<std::size_t>(samples * input));
    last.resize(static_cast<std::size_t>(samples * rows));
    for (std::int64_t i = 0; i < samples; ++i)
      work_.data->training(plan_.batches().first_of(microbatch) + i,
                           {first.tokens.data() + i * input,
                            first.input.data() + i * input, last.data() + i * rows});
  }

  void compute(replayed_stage& stage, const sample& s, int microbatch) {
    const auto& a = s.what;
    auto& k = of(a.stage, microbatch);
    const auto samples = plan_.batches().samples_of(microbatch);
    const auto sizes = stage.layers.sizes(samples);
    if (!stage.versions.contains(s.version))
      throw std::logic_error(to_string(a, true) + " read version "
                             + std::to_string(s.version) + ", which does not exist");
    values output(static_cast<std::size_t>(sizes.output)),
      down(static_cast<std::size_t>(stage.layers.is_first() ? 0 : sizes.input)),
      scratch(static_cast<std::size_t>(sizes.scratch));
    k.stash.resize(static_cast<std::size_t>(sizes.stash));
    k.kept_gradients.resize(static_cast<std::size_t>(sizes.kept));
    pass<float> p;
    p.samples = samples;
    p.first = plan_.batches().first_of(microbatch);
    p.tokens = k.tokens.data();
    p.input = k.input.data();
    p.labels = labels_[microbatch].data();
    p.output = output.data();
    p.stash = k.stash.data();
    p.output_gradient = k.from_above.data();
    p.input_gradient = down.empty() ? nullptr : down.data();
    p.kept = k.kept_gradients.data();
    p.parameters = readable(stage.versions.at(s.version));
    const bool apart = plan_.shares_out(shared_out::gradients);
    const bool sums = a.what == op::backward || a.what == op::weight_gradient;
    if (apart && sums)
      stage.by_microbatch.push_back(stage.sum);
    p.gradients = writable(apart && sums ? stage.by_microbatch.back() : stage.sum);
    p.beta = stage.summed == 0 || apart ? 0.0F : 1.0F;
    p.scratch = scratch.data();
    p.threads = &threads_;
    if (a.what == op::forward) {
      const auto loss = stage.layers.forward(p);
      if (stage.layers.is_last())
        log_.add({microbatch, samples, loss});
      else
        of(a.stage + 1, microbatch).input = std::move(output);
      return;
    }
    if (a.what == op::backward)
      stage.layers.backward(p);
    else if (a.what == op::input_gradient)
      stage.layers.input_gradient(p);
    else
      stage.layers.weight_gradient(p);
    if (a.what != op::weight_gradient && a.stage > 0)
      of(a.stage - 1, microbatch).from_above = std::move(down);
    if (a.what != op::input_gradient) {
      ++stage.summed;
      stage.samples += samples;
      kept_.erase({a.stage, microbatch});
    }
  }

  /// Those who must all have come to this update before it is made.
  std::vector<replayed_stage*> meeting(const replayed_stage& stage) {
    std::vector<replayed_stage*> result;
    const bool all =
      work_.optimizer.clip > 0 && work_.optimizer.scope == clip_scope::network;
    for (int r = 0; r < plan_.replicas(); ++r)
      for (int s = 0; s < plan_.dims.stages; ++s)
        if ((all || s == stage.where.stage)
            && (exchanges_.empty() || stage_at(r, s).where.data == stage.where.data))
          result.push_back(&stage_at(r, s));
    return result;
  }

  static bool have_met(const std::vector<replayed_stage*>& all, int version) {
    return std::ranges::all_of(all, [&](const replayed_stage* s) {
      return !s->over() && s->now().what.what == op::update
             && s->now().version == version;
    });
  }

  static void end_update(replayed_stage& stage) {
    stage.summed = 0;
    stage.samples = 0;
    ++stage.next;
    stage.forget();
  }

  /// The first replica of a stage in a data replica, and how many there are.
  int first_replica(int data) const { return data * directions(); }
  int directions() const { return replicas_of(plan_.sch.where); }

  /// Pushes the updates of all that have met, of one data replica.
  void push(const std::vector<replayed_stage*>& all) {
    std::map<int, std::int64_t> samples; // by stage, over directions
    for (const auto* stage : all)
      samples[stage->where.stage] += stage->samples;
    const int d = all.front()->where.data;
    double squares = 0;
    for (const auto& [s, count] : samples) {
      auto& first = stage_at(first_replica(d), s);
      for (int r = 1; r < directions(); ++r)
        for (std::size_t b = 0; b < first.sum.size(); ++b)
          for (std::size_t i = 0; i < first.sum[b].size(); ++i)
            first.sum[b][i] += stage_at(first_replica(d) + r, s).sum[b][i];
      for (const double part :
           squares_of(parts_of(first.layers.layers()), readable(first.sum)))
        squares += part;
    }
    for (const auto& [s, count] : samples)
      exchanges_[static_cast<std::size_t>(s)].push(
        d, count,
        clip_factor(work_.optimizer.clip,
                    std::sqrt(squares) / static_cast<double>(count)),
        stage_at(first_replica(d), s).sum);
  }

  /// An update of one data replica alone.
  bool update_alone(replayed_stage& stage) {
    const int d = stage.where.data, makes = stage.now().version;
    auto& exchange = exchanges_[static_cast<std::size_t>(stage.where.stage)];
    if (!exchange.under_way(d)) {
      const auto all = meeting(stage);
      if (!have_met(all, makes))
        return false;
      push(all);
    }
    const auto version = exchange.pull(d);
    if (!version)
      return false;
    for (int r = 0; r < directions(); ++r) {
      auto& one = stage_at(first_replica(d) + r, stage.where.stage);
      one.versions[makes] = *version;
      end_update(one);
    }
    return true;
  }

  bool update(replayed_stage& stage) {
    if (!exchanges_.empty())
      return update_alone(stage);
    const int makes = stage.now().version;
    auto all = meeting(stage);
    if (!have_met(all, makes))
      return false;
    std::map<int, std::int64_t> samples; // by stage, over replicas
    for (auto* other : all)
      samples[other->where.stage] += other->samples;
    for (const auto& [s, count] : samples)
      add_replicas(s);
    double squares = 0;
    for (const auto& [s, count] : samples)
      for (int i = 0; i < plan_.share_of({}).count; ++i)
        for (const double part : squares_of(
               parts_of(stage_at(0, s).layers.layers(), {i, plan_.share_of({}).count}),
               readable(stage_at(0, s).sum)))
          squares += part;
    for (const auto& [s, count] : samples)
      make_version(s, count,
                   clip_factor(work_.optimizer.clip,
                               std::sqrt(squares) / static_cast<double>(count)));
    for (auto* other : all)
      end_update(*other);
    return true;
  }

  /// Sums each microbatch over data replicas, and then microbatches: for each
  /// direction, in its stage of the first data replica; nothing is left in those of the
  /// others.
  void add_microbatches(int s) {
    const int directions = replicas_of(plan_.sch.where);
    for (int r = 0; r < plan_.replicas(); ++r) {
      auto& stage = stage_at(r, s);
      for (std::size_t b = 0; b < stage.sum.size(); ++b) {
        const auto n = static_cast<std::int64_t>(stage.sum[b].size());
        for (std::size_t k = 0; k < stage.by_microbatch.size() && r < directions; ++k) {
          std::vector<float*> arrays;
          for (int other = r; other < plan_.replicas(); other += directions)
            arrays.push_back(stage_at(other, s).by_microbatch[k][b].data());
          sum_data_replicas(plan_, arrays, n);
          for (std::size_t i = 0; i < stage.sum[b].size(); ++i)
            stage.sum[b][i] = k == 0 ? arrays[0][i] : stage.sum[b][i] + arrays[0][i];
        }
      }
    }
    for (int r = 0; r < plan_.replicas(); ++r)
      stage_at(r, s).by_microbatch.clear();
    for (int r = 1; r < directions; ++r)
      for (std::size_t b = 0; b < stage_at(0, s).sum.size(); ++b)
        for (std::size_t i = 0; i < stage_at(0, s).sum[b].size(); ++i)
          stage_at(0, s).sum[b][i] += stage_at(r, s).sum[b][i];
  }

  void add_replicas(int s) {
    if (plan_.shares_out(shared_out::gradients))
      return add_microbatches(s);
    for (std::size_t b = 0; b < stage_at(0, s).sum.size(); ++b) {
      std::vector<float*> arrays;
      for (int r = 0; r < plan_.replicas(); ++r)
        arrays.push_back(stage_at(r, s).sum[b].data());
      sum_replicas(plan_, arrays,
                   static_cast<std::int64_t>(stage_at(0, s).sum[b].size()));
    }
  }

  void make_version(int s, std::int64_t samples, double factor) {
    auto& first = stage_at(0, s);
    const int from = first.versions.rbegin()->first;
    auto next = first.versions.at(from);
    optimizers_[static_cast<std::size_t>(s)].update(
      samples, factor, readable(first.sum), readable(first.versions.at(from)),
      writable(next));
    for (int r = 0; r < plan_.replicas(); ++r)
      stage_at(r, s).versions[from + 1] = next;
  }

  const run_plan& plan_;
  const training& work_;
  loss_log log_;
  team threads_;
  memory_account account_;
  std::vector<replayed_stage> stages_; // of replica 0, then of 1
  std::vector<optimizer> optimizers_;
  std::deque<replayed_exchange> exchanges_;  // a stage each, if updates are not common
  std::map<std::pair<int, int>, kept> kept_; // by stage and microbatch of all
  std::map<int, std::vector<std::int32_t>> labels_;
};

} // namespace

void sum_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                  std::int64_t n) {
  const auto directions = static_cast<std::size_t>(replicas_of(plan.sch.where));
  std::vector<float*> of_data;
  for (std::size_t r = 0; r < arrays.size(); r += directions) {
    for (auto d = r + 1; d < r + directions; ++d)
      for (std::int64_t i = 0; i < n; ++i)
        arrays[r][i] += arrays[d][i];
    of_data.push_back(arrays[r]);
  }
  sum_data_replicas(plan, of_data, n);
}

void sum_data_replicas(const run_plan& plan, const std::vector<float*>& arrays,
                       std::int64_t n) {
  if (plan.data == 1)
    return;
  const auto& order = plan.exchange->sum;
  const std::vector<const float*> read{arrays.begin(), arrays.end()};
  const auto sum =
    sum_in_order(order.name, read, chunks::even(n, order.chunks(plan.data)));
  std::ranges::copy(sum, arrays.front());
}

trained replay(const run_plan& plan, const record& ran,
               const shared_history& accesses) {
  return replaying{plan, ran, accesses}.run();
}

} // namespace troupe
