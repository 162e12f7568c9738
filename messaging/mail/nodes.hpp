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

// Messages between the leader (the process that leads a run) and the nodes that each
// run a part, besides the messages of actors. Nodes of a run are counted from 1; 0 is
// the leader.
//
//   leader         node
//   ask_identity   identity
//   prepare        prepared, or refused
//   connect        connected
//   build          ready
//   start_run      beat, repeatedly
//   end_run        node_report

/// The results that a run keeps for the caller. Each field is the field of run_plan
/// (plan/run_plan.hpp) with the same name, or with `keep_` before the name. The leader
/// copies the fields from its plan.
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

/// Leader: requests `identity`.
struct ask_identity {};

/// Node: random bits of the process. All addresses of one node give the same bits.
struct identity {
  std::array<std::uint64_t, 2> bits{};
};

/// Leader: the run, and the part that the receiver runs.
struct prepare {
  std::string version; ///< Version of troupe.
  /// Secret of this run, which only the run's processes know.
  std::array<std::uint64_t, 2> session;
  std::uint32_t generation = 0;
  int node = 0;                   ///< The receiver's number.
  std::vector<std::string> nodes; ///< Addresses; the first is of node 1.
  std::vector<int> node_map;      ///< The node of each rank.
  std::string options;            ///< The run's options as text.
  kept_results keep;
  // The point at which the run resumes; all four fields are 0 or empty if no batch
  // precedes the run. `batches_before` counts the batches before that point. `older`
  // counts the versions besides the newest version. `state_arrays` counts the
  // optimizer's state arrays. `updates` has the number of updates of each layer.
  int batches_before = 0;
  int older = 0;
  int state_arrays = 0;
  std::vector<std::int64_t> updates;
  std::vector<int> layers; ///< Indices of layers whose values arrive before `build`.
  /// Nanoseconds without a message after which a node counts as lost.
  std::int64_t failure_timeout = 0;
};

/// A property of a process that changes the bits of a run. Error messages show both
/// texts.
struct deciding_fact {
  std::string name;  ///< "data"
  std::string value; ///< "text, 1000 bytes, XXH3 78af5f94892f3950"
};

/// Node: the node can run the part in `prepare`.
struct prepared {
  /// Boot id of the machine: nodes with the same id share a steady clock. Empty if the
  /// kernel gives no id.
  std::string machine;
  // `gpus` and `kinds` have one entry per rank of the node, in order; an entry is empty
  // if the rank is on the CPU.
  std::vector<std::string> gpus;  ///< Names that no other GPU has.
  std::vector<std::string> kinds; ///< The kind of GPU, which decides the bits.
  /// The reason why the node's GPUs cannot exchange arrays in groups (`connect`); empty
  /// if no such reason exists, or if no rank of the node is on a GPU.
  std::string ungrouped;
  std::vector<deciding_fact> facts; ///< Facts that must be equal on all nodes of a run.
};

/// Node: the node cannot run the part in `prepare`, or has stopped running the part.
struct refused {
  std::string why;
  /// True if the node ends by request; another node may take over.
  bool leaves = false;
  /// True if every retry fails until options, files or versions change.
  bool lasts = false;
};

/// Leader: connect to the nodes with higher numbers than the receiver. The GPUs of each
/// group in `groups` exchange arrays themselves.
struct connect {
  std::vector<int> groups; ///< Indices among all groups of the plan.
};

/// Node: the node is connected to all other nodes.
struct connected {
  /// Ids of the groups whose first member is on this node, in the order of `connect`.
  std::vector<group_id> ids;
};

/// Leader: all values of layers have been sent; spawn the actors of the node's part.
struct build {
  /// Ids of all groups in `connect`, in the order of `connect`.
  std::vector<group_id> ids;
};

/// Node: all actors of the node exist, and have the handles of all other actors.
struct ready {};

/// Leader to node: a request with `leader_time`, the leader's clock. Node to leader:
/// the answer with the same `leader_time`, and with `node_time`, the node's clock. Both
/// are nanoseconds of steady clocks.
struct clock_probe {
  nanoseconds leader_time;
  nanoseconds node_time;
};

/// Leader: the run starts.
struct start_run {
  nanoseconds start; ///< The run's start, in nanoseconds on the node's steady clock.
};

/// Leader to node: stop the run's clock.
struct pause_clock {};

/// Leader to node: resume the run's clock.
struct resume_clock {};

/// Leader or node: the process is alive. A node also reports the state of the devices.
struct beat {
  int verdict = 0;     ///< State of the node's devices: 0 fine, 1 slow, 2 stalled.
  std::string at_work; ///< Lines of text about the operations that the devices execute.
};

/// Node: another node does not answer, or has closed the link.
struct lost_node {
  int node;
  std::string why;
};

/// Leader: the run has ended.
struct end_run {};

/// Node, at the end of the run: bytes of memory that the node's ranks used, bytes sent,
/// and counters of run_result (actors/run).
struct node_report {
  struct rank_bytes {
    int rank;
    std::int64_t peak;
    /// Bytes of each memory_use, in the order of the enumeration.
    std::vector<std::int64_t> parts;
    std::int64_t reserved;
  };
  std::vector<rank_bytes> ranks;
  /// Bytes of each class of traffic, in the order of the enumeration.
  std::vector<std::int64_t> moved;
  std::int64_t envelopes = 0;
  std::int64_t most_envelopes = 0;
  std::int64_t late_allocations = 0;
  std::int64_t sums = 0;
  std::int64_t sums_at_work = 0;
  std::int64_t stale_frames = 0; ///< Frames of older generations, dropped.
};

/// Any process: requests the state of a node.
struct ask_status {};

/// Node: the answer to `ask_status`.
struct node_status {
  std::string version;
  std::string doing; ///< "idle", or a text about the run that the node executes.
  int waiting = 0;   ///< Runs in the queue.
};

/// Node to coordinator: the node's part of the run has failed, because an actor failed
/// or memory ran out.
struct failed {
  std::string why;
};

} // namespace troupe::mail
