#pragma once

#include "schedules/schedule.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe {

/// What one rank does, in order, generated as it runs: forwards and backwards of the
/// stages it hosts, merged by slot, with an update after each minibatch.
class program {
public:
  /// \pre !sch.local_rule(), and the schedule allows `dims`.
  program(const schedule& sch, const shape& dims, int rank);

  /// The next action; null when all is done.
  const action* front();

  /// \pre front() != nullptr
  void pop() { ++at_; }

private:
  /// The forwards or the backwards of one stage, and how many of them have been
  /// emitted.
  struct stream {
    op what;
    hosted_stage where;
    int k;
    std::int64_t slot;
  };

  void generate();
  void generate_one(slot_formula slot_of);
  void generate_batch(const explicit_program& batch_of);
  void begin_batch(slot_formula slot_of);
  void end_batch();
  int microbatches_of_stream() const;
  bool update_is_due(int backwards) const;
  int index_of(const stream& s) const;

  schedule schedule_;
  shape dims_;
  int rank_;
  int batch_ = 0;
  std::vector<stream> streams_; // those with actions left in this batch
  std::vector<action> ready_;   // generated, from at_ on not yet popped
  std::size_t at_ = 0;
};

/// The whole program of a rank.
std::vector<action> generate(const schedule& sch, const shape& dims, int rank);

} // namespace troupe
