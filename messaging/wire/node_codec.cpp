// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/wire/codec.hpp"
#include "messaging/wire/fields.hpp"
#include "messaging/wire/words.hpp"

#include <algorithm>
#include <limits>

namespace troupe::wire {

namespace {

/// The largest number of older versions, and of state arrays: the reader allocates
/// memory for each.
constexpr int most_kinds = 1 << 16;

void write(schema::KeptThings::Builder to, const mail::kept_results& from) {
  to.setRecord(from.record);
  to.setFirst(from.first);
  to.setWatched(from.watched);
  to.setWeights(from.weights);
  to.setGradients(from.gradients);
  to.setVersions(from.versions);
  to.setModelTimes(from.model_times);
  to.setEvaluateEvery(from.evaluate_every);
  to.setCheckpointEvery(from.checkpoint_every);
  to.setSteps(from.steps);
}

/// A number of batches: a caller may choose any number, and 0 means never.
int every(int n) {
  return static_cast<int>(
    within(n, 0, std::numeric_limits<int>::max(), "batches between two"));
}

mail::kept_results read(schema::KeptThings::Reader from) {
  return {.record = from.getRecord(),
          .first = natural(from.getFirst(), "the first that is kept"),
          .watched = from.getWatched(),
          .weights = from.getWeights(),
          .gradients = from.getGradients(),
          .versions = from.getVersions(),
          .model_times = from.getModelTimes(),
          .evaluate_every = every(from.getEvaluateEvery()),
          .checkpoint_every = every(from.getCheckpointEvery()),
          .steps = from.getSteps()};
}

void write(capnp::List<capnp::Text>::Builder to, const std::vector<std::string>& from) {
  for (unsigned i = 0; i < to.size(); ++i)
    to.set(i, as_text(from[i]));
}

void write(schema::Prepare::Builder to, const mail::prepare& from) {
  to.setVersion(as_text(from.version));
  to.setSessionHigh(from.session[0]);
  to.setSessionLow(from.session[1]);
  to.setGeneration(from.generation);
  to.setNode(from.node);
  write(to.initNodes(length(from.nodes)), from.nodes);
  write_numbers(to.initPlaces(length(from.node_map)), from.node_map);
  to.setOptions(as_text(from.options));
  write(to.initKeep(), from.keep);
  to.setBefore(from.batches_before);
  to.setOlder(from.older);
  to.setStateArrays(from.state_arrays);
  write_numbers(to.initUpdates(length(from.updates)), from.updates);
  write_numbers(to.initLayers(length(from.layers)), from.layers);
  to.setFailureTimeout(from.failure_timeout);
}

mail::prepare read(schema::Prepare::Reader from, read_budget& left) {
  const auto text = [&left](capnp::Text::Reader t) { return wire::read(t, left); };
  return {.version = text(from.getVersion()),
          .session = {from.getSessionHigh(), from.getSessionLow()},
          .generation = from.getGeneration(),
          .node = natural(from.getNode(), "a node"),
          .nodes = read_list(from.getNodes(), left, text),
          .node_map = read_naturals<int>(from.getPlaces(), left, "a node"),
          .options = read_exactly(from.getOptions(), left),
          .keep = read(from.getKeep()),
          .batches_before = natural(from.getBefore(), "batches"),
          .older = static_cast<int>(
            within(from.getOlder(), 0, most_kinds, "the count of older versions")),
          .state_arrays = static_cast<int>(
            within(from.getStateArrays(), 0, most_kinds, "the count of state arrays")),
          .updates = read_naturals<std::int64_t>(from.getUpdates(), left, "updates"),
          .layers = read_naturals<int>(from.getLayers(), left, "a layer"),
          .failure_timeout = natural(from.getFailureTimeout(), "a timeout")};
}

void write(schema::NodeReport::Builder to, const mail::node_report& from) {
  auto ranks = to.initRanks(length(from.ranks));
  for (unsigned i = 0; i < ranks.size(); ++i) {
    const auto& r = from.ranks[i];
    ranks[i].setRank(r.rank);
    ranks[i].setPeak(r.peak);
    write_numbers(ranks[i].initParts(length(r.parts)), r.parts);
    ranks[i].setReserved(r.reserved);
  }
  write_numbers(to.initMoved(length(from.moved)), from.moved);
  to.setEnvelopes(from.envelopes);
  to.setMostEnvelopes(from.most_envelopes);
  to.setLateAllocations(from.late_allocations);
  to.setSums(from.sums);
  to.setSumsAtWork(from.sums_at_work);
  to.setStaleFrames(from.stale_frames);
}

mail::node_report read(schema::NodeReport::Reader from, read_budget& left) {
  const auto counts = [&left](auto list) {
    return read_naturals<std::int64_t>(list, left, "bytes");
  };
  const auto rank = [&](schema::NodeReport::RankBytes::Reader r) {
    return mail::node_report::rank_bytes{.rank = natural(r.getRank(), "a rank"),
                                         .peak = natural(r.getPeak(), "bytes"),
                                         .parts = counts(r.getParts()),
                                         .reserved = natural(r.getReserved(), "bytes")};
  };
  return {.ranks = read_list(from.getRanks(), left, rank),
          .moved = counts(from.getMoved()),
          .envelopes = natural(from.getEnvelopes(), "envelopes"),
          .most_envelopes = natural(from.getMostEnvelopes(), "envelopes"),
          .late_allocations = natural(from.getLateAllocations(), "allocations"),
          .sums = natural(from.getSums(), "sums"),
          .sums_at_work = natural(from.getSumsAtWork(), "sums"),
          .stale_frames = natural(from.getStaleFrames(), "frames")};
}

void write(capnp::List<capnp::Data>::Builder to, const std::vector<group_id>& from) {
  for (unsigned i = 0; i < to.size(); ++i)
    to.set(i, {reinterpret_cast<const capnp::byte*>(from[i].data()), from[i].size()});
}

std::vector<group_id> read(capnp::List<capnp::Data>::Reader from, read_budget& left) {
  return read_list(from, left, [](capnp::Data::Reader id) {
    group_id result;
    if (id.size() != result.size())
      throw bad_bytes{"an id of a group of GPUs has the wrong size"};
    std::ranges::copy(id, result.begin());
    return result;
  });
}

struct message_writer {
  schema::NodeMail::Builder to;

  void operator()(const mail::prepare& m) { write(to.initPrepare(), m); }
  void operator()(const mail::prepared& m) {
    auto g = to.initPrepared();
    g.setMachine(as_text(m.machine));
    write(g.initGpus(length(m.gpus)), m.gpus);
    write(g.initKinds(length(m.kinds)), m.kinds);
    g.setUngrouped(as_text(m.ungrouped));
    auto facts = g.initFacts(length(m.facts));
    for (unsigned i = 0; i < facts.size(); ++i) {
      facts[i].setName(as_text(m.facts[i].name));
      facts[i].setValue(as_text(m.facts[i].value));
    }
  }
  void operator()(const mail::refused& m) {
    auto g = to.initRefused();
    g.setWhy(as_text(m.why));
    g.setLeaves(m.leaves);
    g.setLasts(m.lasts);
  }
  void operator()(const mail::connect& m) {
    write_numbers(to.initConnect().initGroups(length(m.groups)), m.groups);
  }
  void operator()(const mail::connected& m) {
    write(to.initConnected().initIds(length(m.ids)), m.ids);
  }
  void operator()(const mail::build& m) {
    write(to.initBuild().initIds(length(m.ids)), m.ids);
  }
  void operator()(const mail::ready&) { to.setReady(); }
  void operator()(const mail::start_run& m) { to.initBeginRun().setStart(m.start); }
  void operator()(const mail::pause_clock&) { to.setPauseClock(); }
  void operator()(const mail::resume_clock&) { to.setResumeClock(); }
  void operator()(const mail::end_run&) { to.setEndRun(); }
  void operator()(const mail::node_report& m) { write(to.initNodeReport(), m); }
  void operator()(const mail::ask_status&) { to.setAskStatus(); }
  void operator()(const mail::ask_identity&) { to.setAskIdentity(); }
  void operator()(const mail::identity& m) {
    auto g = to.initIdentity();
    g.setHigh(m.bits[0]);
    g.setLow(m.bits[1]);
  }

  void operator()(const mail::clock_probe& m) {
    auto g = to.initClockProbe();
    g.setLead(m.leader_time);
    g.setNode(m.node_time);
  }

  void operator()(const mail::beat& m) {
    auto g = to.initBeat();
    g.setVerdict(m.verdict);
    g.setAtWork(as_text(m.at_work));
  }

  void operator()(const mail::lost_node& m) {
    auto g = to.initLostNode();
    g.setNode(m.node);
    g.setWhy(as_text(m.why));
  }

  void operator()(const mail::node_status& m) {
    auto g = to.initNodeStatus();
    g.setVersion(as_text(m.version));
    g.setDoing(as_text(m.doing));
    g.setWaiting(m.waiting);
  }
};

mail::prepared prepared_of(schema::NodeMail::Prepared::Reader from, read_budget& left) {
  const auto text = [&left](capnp::Text::Reader t) { return wire::read(t, left); };
  return {.machine = text(from.getMachine()),
          .gpus = read_list(from.getGpus(), left, text),
          .kinds = read_list(from.getKinds(), left, text),
          .ungrouped = text(from.getUngrouped()),
          .facts =
            read_list(from.getFacts(), left, [&](schema::DecidingFact::Reader f) {
              return mail::deciding_fact{text(f.getName()), text(f.getValue())};
            })};
}

node_message message_of(schema::NodeMail::Reader from, read_budget& left) {
  using is = schema::NodeMail;
  const auto text = [&left](capnp::Text::Reader t) { return wire::read(t, left); };
  switch (from.which()) {
  case is::PREPARE:
    return read(from.getPrepare(), left);
  case is::PREPARED:
    return prepared_of(from.getPrepared(), left);
  case is::REFUSED:
    return mail::refused{text(from.getRefused().getWhy()),
                         from.getRefused().getLeaves(), from.getRefused().getLasts()};
  case is::CONNECT:
    return mail::connect{
      read_naturals<int>(from.getConnect().getGroups(), left, "a group")};
  case is::CONNECTED:
    return mail::connected{read(from.getConnected().getIds(), left)};
  case is::BUILD:
    return mail::build{read(from.getBuild().getIds(), left)};
  case is::READY:
    return mail::ready{};
  case is::CLOCK_PROBE:
    return mail::clock_probe{read_time(from.getClockProbe().getLead()),
                             read_time(from.getClockProbe().getNode())};
  case is::BEGIN_RUN:
    return mail::start_run{read_time(from.getBeginRun().getStart())};
  case is::PAUSE_CLOCK:
    return mail::pause_clock{};
  case is::RESUME_CLOCK:
    return mail::resume_clock{};
  case is::BEAT:
    return mail::beat{
      static_cast<int>(within(from.getBeat().getVerdict(), 0, 2, "a verdict")),
      read_lines(from.getBeat().getAtWork(), left)};
  case is::LOST_NODE:
    return mail::lost_node{natural(from.getLostNode().getNode(), "a node"),
                           text(from.getLostNode().getWhy())};
  case is::END_RUN:
    return mail::end_run{};
  case is::NODE_REPORT:
    return read(from.getNodeReport(), left);
  case is::ASK_STATUS:
    return mail::ask_status{};
  case is::ASK_IDENTITY:
    return mail::ask_identity{};
  case is::IDENTITY:
    return mail::identity{{from.getIdentity().getHigh(), from.getIdentity().getLow()}};
  case is::NODE_STATUS: {
    const auto m = from.getNodeStatus();
    return mail::node_status{text(m.getVersion()), text(m.getDoing()),
                             natural(m.getWaiting(), "runs in line")};
  }
  }
  throw bad_bytes{"a message of nodes is of an unknown kind"};
}

} // namespace

bytes encode(const node_message& content) {
  outgoing message;
  std::visit(message_writer{message.root<schema::NodeMail>()}, content);
  return message.to_bytes();
}

tl::expected<node_message, std::string>
decode_node_message(std::span<const unsigned char> from) {
  return read_message<schema::NodeMail>(from, message_of);
}

} // namespace troupe::wire
