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

// Messages between the process that leads a run and the nodes that each run a part,
// besides the messages of actors. Nodes of a run are counted from 1; 0 is the leader.
//
//   leader         node
//   ask_identity   identity
//   prepare        prepared, or refused
//   connect        connected
//   build          ready
//   start_run      beat, repeatedly
//   end_run        node_report

/// The results that a run keeps for the caller. The leader's command sets the fields.
struct kept_results {
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

/// Leader: requests the node's identity.
struct ask_identity {};

/// Node: random bits of the process, the same at every address of the node.
struct identity {
  std::array<std::uint64_t, 2> bits{};
};

/// Leader: the run, and the part that the receiver runs.
struct prepare {
  std::string version; ///< Version of troupe.
  /// Secret of this run, known to no other process.
  std::array<std::uint64_t, 2> session;
  std::uint32_t generation = 0;
  int node = 0;                   ///< The receiver's number.
  std::vector<std::string> nodes; ///< Addresses; the first is of node 1.
  std::vector<int> node_map;      ///< The node of each rank.
  std::string options;            ///< The run's options as text.
  kept_results keep;
  // The point at which the run resumes: batches before that point, older versions,
  // moments, and updates of the layers.
  int batches_before = 0;
  int older = 0;
  int moments = 0;
  std::vector<std::int64_t> updates;
  std::vector<int> layers; ///< Layers whose values arrive before `build`.
  /// Nanoseconds without a message after which a node counts as lost.
  std::int64_t failure_timeout = 0;
};

/// A property of a process that decides the bits of a run, as text for users, too.
struct deciding_fact {
  std::string name;  ///< "data"
  std::string value; ///< "text, 1000 bytes, XXH3 78af5f94892f3950"
};

/// Node: the node can run that part.
struct prepared {
  std::string machine; ///< Boot id: nodes with the same one share a clock.
  // The GPU of each rank of the node, in order; empty: the rank is on the CPU.
  std::vector<std::string> gpus;  ///< Names that no other GPU has.
  std::vector<std::string> kinds; ///< The kind of GPU, which decides the bits.
  /// Why the node's GPUs cannot be in groups; empty: they can.
  std::string ungrouped;
  std::vector<deciding_fact> facts; ///< The same on all nodes of a run.
};

/// Node: the node cannot run that part, or cannot any more.
struct refused {
  std::string why;
  bool leaves = false; ///< The node ends by request: another node may take over.
  bool lasts = false;  ///< Until options, files or versions change.
};

/// Leader: connect to the nodes of higher numbers. The GPUs of these groups exchange
/// arrays themselves. A group's number is the index among all groups of the plan.
struct connect {
  std::vector<int> groups;
};

/// Node: connected to all nodes. The ids are of the groups whose first member is on
/// this node.
struct connected {
  std::vector<group_id> ids;
};

/// Leader: all values have been sent; spawn the actors of your part.
struct build {
  std::vector<group_id> ids; ///< Ids of all groups in `connect`.
};

/// Node: all actors of the node exist, and have the handles of all other actors.
struct ready {};

/// Leader to node: the leader's clock now. Node: the answer, with the node's clock.
struct clock_probe {
  nanoseconds leader_time;
  nanoseconds node_time;
};

/// Leader: the run starts.
struct start_run {
  nanoseconds start; ///< The run's start, in nanoseconds on the node's steady clock.
};

/// Leader to node: the run's clock stops; the run's clock resumes.
struct pause_clock {};
struct resume_clock {};

/// Leader or node: the process is alive. A node also reports the state of the devices.
struct beat {
  int verdict = 0;     ///< 0 fine, 1 slow, 2 stalled.
  std::string at_work; ///< Lines about the devices.
};

/// Node: another node does not answer, or has closed the link.
struct lost_node {
  int node;
  std::string why;
};

/// Leader: the run has ended.
struct end_run {};

/// Node, at the end: the bytes that the node's ranks held and sent.
struct node_report {
  struct rank_bytes {
    int rank;
    std::int64_t peak;
    std::vector<std::int64_t> parts; ///< Bytes by memory_use.
    std::int64_t reserved;
  };
  std::vector<rank_bytes> ranks;
  std::vector<std::int64_t> moved; ///< Bytes by traffic.
  std::int64_t envelopes = 0;
  std::int64_t most_envelopes = 0;
  std::int64_t late_allocations = 0;
  std::int64_t sums = 0;
  std::int64_t sums_at_work = 0;
  std::int64_t stale_frames = 0; ///< Frames of older generations, dropped.
};

/// Any process: requests the state of a node.
struct ask_status {};

/// Node: the answer to that request.
struct node_status {
  std::string version;
  std::string doing; ///< "idle", or the run.
  int waiting = 0;   ///< Runs in the queue.
};

/// To the coordinator: an actor of a node has failed.
struct failed {
  std::string why;
};

} // namespace troupe::mail
