// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/communicator.hpp"
#include "messaging/position.hpp"
#include "messaging/record.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::mail {

// What the process that leads a run and the nodes that play it say to each other,
// besides the mail of their actors. Nodes of a run are counted from 1; 0 leads.
//
//   lead   ask        prepare            connect            build        begin     ..
//   end node     identity          prepared           connected       ready beat ..
//   ended

/// What a run keeps for its caller; these belong to the lead's command.
struct kept_things {
  bool record = false;
  std::int64_t first = 0;
  bool watched = false;
  bool weights = false;
  bool gradients = false;
  bool versions = false;
  bool model_times = false;
  int evaluate_every = 0;
  int checkpoint_every = 0;
  bool steps = false;
};

/// Lead: which node are you?
struct ask_identity {};

/// Node: random bits that its process has for itself, whatever its address is.
struct identity {
  std::array<std::uint64_t, 2> bits{};
};

/// Lead: this is the run, and your part of it.
struct prepare {
  std::string version;                  ///< Of troupe.
  std::array<std::uint64_t, 2> session; ///< Of this run; nobody else knows it.
  std::uint32_t generation = 0;
  int node = 0;                   ///< The receiver's number.
  std::vector<std::string> nodes; ///< Addresses; the first is of node 1.
  std::vector<int> places;        ///< The node of each rank.
  std::string options;            ///< As text.
  kept_things keep;
  // Where the run goes on: batches before it, older versions, moments, updates of
  // layers.
  int before = 0;
  int older = 0;
  int moments = 0;
  std::vector<std::int64_t> updates;
  std::vector<int> layers;          ///< Whose values will come before `build`.
  std::int64_t failure_timeout = 0; ///< nanoseconds
};

/// A property of a process that decides the bits of a run, for people too.
struct deciding_fact {
  std::string name;  ///< "data"
  std::string value; ///< "text, 1000 bytes, XXH3 78af5f94892f3950"
};

/// Node: it can play that.
struct prepared {
  std::string machine; ///< Since it was started: who shares it shares a clock.
  // Of each rank that it plays, in their order; empty: it is on the CPU.
  std::vector<std::string> gpus;  ///< Names that no other GPU has.
  std::vector<std::string> kinds; ///< What bits they make.
  std::string ungrouped; ///< Why its GPUs cannot be in groups; empty: they can.
  std::vector<deciding_fact> facts; ///< All nodes of a run need the same.
};

/// Node: it cannot, or not any more.
struct refused {
  std::string why;
  bool leaves = false; ///< The node is told to end: another may play its part.
  bool lasts = false;  ///< Options, files or versions have to change first.
};

/// Lead: join the nodes of higher numbers. GPUs of these groups exchange arrays
/// themselves, by their place among all that the plan has.
struct connect {
  std::vector<int> groups;
};

/// Node: it is joined to all. Of those groups whose first member it plays, the ids.
struct connected {
  std::vector<group_id> ids;
};

/// Lead: all values have been sent; make your part.
struct build {
  std::vector<group_id> ids; ///< Of all those groups.
};

/// Node: its actors are there, and know everybody.
struct ready {};

/// Lead to node: its clock now. Node: the answer, with its own.
struct clock_probe {
  nanoseconds lead;
  nanoseconds node;
};

/// Lead: the run begins.
struct begin_run {
  nanoseconds start; ///< On the node's steady clock.
};

/// Lead to node: the run's clock stands still; goes on.
struct pause_clock {};
struct resume_clock {};

/// Either: it is there. A node: how its devices are.
struct beat {
  int verdict = 0;     ///< 0 fine, 1 slow, 2 stalled.
  std::string at_work; ///< Lines about them.
};

/// Node: another one does not answer it, or has closed the link.
struct lost_node {
  int node;
  std::string why;
};

/// Lead: the run is over.
struct end_run {};

/// Node, at the end: what its ranks held and sent.
struct node_report {
  struct rank_bytes {
    int rank;
    std::int64_t peak;
    std::vector<std::int64_t> parts; ///< By memory_use.
    std::int64_t reserved;
  };
  std::vector<rank_bytes> ranks;
  std::vector<std::int64_t> moved; ///< By traffic.
  std::int64_t envelopes = 0;
  std::int64_t most_envelopes = 0;
  std::int64_t late_allocations = 0;
  std::int64_t sums = 0;
  std::int64_t sums_at_work = 0;
  std::int64_t stale_frames = 0; ///< Of older generations, dropped.
};

/// Anybody: what do you do?
struct ask_status {};

/// Node: that.
struct node_status {
  std::string version;
  std::string doing; ///< "idle", or the run.
  int waiting = 0;   ///< Runs in line.
};

/// An actor of a node has failed, to the coordinator.
struct failed {
  std::string why;
};

} // namespace troupe::mail
