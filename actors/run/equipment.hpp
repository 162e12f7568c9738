#pragma once

#include "actors/experts/expert.hpp"
#include "actors/pipeline/data_source.hpp"
#include "actors/pipeline/stage_tensors.hpp"
#include "actors/rank/rank_memory.hpp"
#include "actors/run/places.hpp"
#include "actors/run/run_watch.hpp"
#include "actors/updates/optimizer_core.hpp"
#include "kernels/virtual_clock.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace troupe {

/// One device and what it computes with.
struct rank_resources {
  rank_resources(const run_plan& plan, int rank) : threads(team_size(plan, rank)) {
    // nop
  }

  rank_memory memory;
  team threads;
  std::unique_ptr<device> computer;
};

/// An expert and where it stands.
struct expert_place {
  position host;
  int number;   ///< In the network's list.
  int in_stage; ///< Among the experts of its stage.
  int on_rank;  ///< Among those of its rank.
  std::shared_ptr<expert_tensors> tensors;
};

/// Every rank of a run, in order.
std::vector<int> all_ranks(const run_plan& plan);

/// What those ranks of a run that are here compute with: devices, threads, and the
/// tensors of their stages, optimizers and experts. All memory is taken when the
/// equipment is made. Actors hold handles of it, so the equipment outlives them.
///
/// Of a stage whose rank is elsewhere nothing is here, so what is asked of it is null
/// or empty. The pool of messages between two stages belongs to the lower one's rank.
class equipment : private places {
public:
  /// \param plan,clock,watch outlive it; the clock is for virtual time, the watch for
  /// real time
  /// \throws std::bad_alloc
  equipment(const run_plan& plan, virtual_clock& clock, run_watch& watch,
            const std::vector<int>& here);

  /// By their numbers; null where a rank is elsewhere.
  const std::vector<std::unique_ptr<rank_resources>>& ranks() const { return ranks_; }

  /// \pre the stage's rank is here
  rank_resources& rank_of_stage(position where) {
    return *ranks_[static_cast<std::size_t>(plan_.rank_of(where))];
  }

  /// The buffers of a pipeline's samples; null in simulations.
  const std::shared_ptr<data_pools>& data_of(position where) const {
    return data_[index(where) / static_cast<std::size_t>(stages())];
  }

  /// Null in simulations.
  const std::shared_ptr<stage_tensors>& tensors_of(position where) const {
    return tensors_[index(where)];
  }

  const optimizer_memory& optimizer_of(position where) const {
    return optimizers_[shard_index(where)];
  }

  /// Null where there are none.
  const std::shared_ptr<shared_parameters>& shared_of(position where) const {
    return shared_[shard_index(where)];
  }
  const all_shared_parameters& shared() const { return shared_; }

  /// Null where a stage has no experts.
  const std::shared_ptr<expert_exchange>& exchange_of(position where) const {
    return exchanges_[index(where)];
  }

  /// Rank by rank; and where an expert stands in that list.
  const std::vector<expert_place>& experts() const { return experts_; }
  std::size_t expert_at(position host, int number) const {
    return expert_at_.at({index(host), number});
  }

  /// A new device of a parameter server's own.
  std::unique_ptr<device> server_device(position where);

  /// What a pipeline's data source reads with.
  sample_reader reader_of(position first);

  /// How often tensor memory was taken since the equipment was made.
  std::int64_t late_allocations() const { return allocations() - at_start_; }

  /// Gives the memory of optimizers back, as far as no actor holds it.
  void release_optimizers() { optimizers_.clear(); }

private:
  bool real() const { return plan_.clock == clock_kind::real; }
  bool has_servers() const { return plan_.updates_are_by(update_by::servers); }
  bool is_here(position where) const {
    return ranks_[static_cast<std::size_t>(plan_.rank_of(where))] != nullptr;
  }
  void equip_rank(int rank);
  void equip_stages();
  void equip_pipeline(int pipeline);
  void equip_optimizer(position where);
  void equip_experts();
  void equip_exchange(position where);
  std::unique_ptr<device> make_device(double slowdown, occupation* seen);
  std::int64_t allocations() const;

  const run_plan& plan_;
  virtual_clock& clock_;
  run_watch& watch_;
  std::vector<std::unique_ptr<rank_resources>> ranks_;
  std::vector<std::shared_ptr<data_pools>> data_;                // a pipeline each
  std::vector<std::shared_ptr<stage_tensors>> tensors_;          // by index()
  std::vector<optimizer_memory> optimizers_;                     // by shard_index()
  all_shared_parameters shared_;                                 // likewise
  std::vector<std::shared_ptr<expert_exchange>> exchanges_;      // by index()
  std::vector<expert_place> experts_;                            // rank by rank
  std::map<std::pair<std::size_t, int>, std::size_t> expert_at_; // by host and number
  std::int64_t at_start_ = 0;                                    // allocations
};

} // namespace troupe
