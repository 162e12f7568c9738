// SPDX-License-Identifier: BSD-3-Clause
#include "actors/rank/weave.hpp"

#include "actors/meetings/layer_meeting.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

using collective = shard_collective<float>::kind;

meeting_step gather(int layer) {
  return {meeting_kind::layers, layer_meeting::gather_of(layer)};
}

meeting_step sum(int layer) {
  return {meeting_kind::layers, layer_meeting::sum_of(layer)};
}

/// Layers of a pass in the order in which the pass reaches each.
std::vector<int> layers_of(const std::vector<piece>& pieces) {
  std::vector<int> result;
  for (const auto& p : pieces)
    if (result.empty() || result.back() != p.layer)
      result.push_back(p.layer);
  return result;
}

/// Adds the meetings of tensor shards or experts: each begins when a piece ends, and
/// must end before the next piece.
void add_collectives(const pass_pieces<float>& pass, std::vector<piece>& to) {
  int index = 0;
  for (std::size_t i = 0; i < pass.size(); ++i) {
    const auto kind = pass[i].collective.operation;
    if (kind == collective::none)
      continue;
    const bool experts = kind == collective::experts;
    const meeting_step next{experts ? meeting_kind::experts : meeting_kind::shards,
                            index++};
    to[i].ends_in.push_back(next);
    to[i].end |= experts ? experts_asked : shards_meet;
    to[i + 1].needs.push_back(next);
  }
}

/// Adds the meetings of data replicas for each layer.
void add_layers(weaving options, woven_action& to) {
  const auto order = layers_of(to.pieces);
  if (options.gathers)
    to.begins.push_back(gather(order.front()));
  auto p = to.pieces.begin();
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (options.gathers)
      p->needs.push_back(gather(order[k]));
    if (options.sums && k >= 2)
      p->needs.push_back(sum(order[k - 2]));
    if (options.gathers && k + 1 < order.size())
      p->begins.push_back(gather(order[k + 1]));
    while (p + 1 != to.pieces.end() && (p + 1)->layer == order[k])
      ++p;
    p->end |= layer_ends;
    if (options.sums)
      p->ends_in.push_back(sum(order[k]));
    ++p;
  }
  if (!options.sums)
    return;
  piece end{.share = 0};
  for (std::size_t k = order.size() < 2 ? 0 : order.size() - 2; k < order.size(); ++k)
    end.needs.push_back(sum(order[k]));
  to.pieces.push_back(std::move(end));
}

const char* name_of(meeting_kind kind) {
  switch (kind) {
  case meeting_kind::shards:
    return "shards";
  case meeting_kind::layers:
    return "layers";
  case meeting_kind::experts:
    return "experts";
  case meeting_kind::directions:
    return "directions";
  case meeting_kind::sums:
    return "sums";
  case meeting_kind::gathers:
    return "gathers";
  case meeting_kind::tie:
    return "tie";
  case meeting_kind::norm:
    return "norm";
  case meeting_kind::servers:
    return "servers";
  case meeting_kind::user:
    return "own";
  }
  throw std::logic_error{"a meeting is of an unknown kind"};
}

std::string to_string(const meeting_step& a) {
  if (a.kind == meeting_kind::layers)
    return (a.index % 2 == 0 ? "gather " : "sum ") + std::to_string(a.index / 2);
  return std::string{name_of(a.kind)} + ' ' + std::to_string(a.index);
}

void add_line(std::string& to, const char* prefix, const meeting_steps& steps) {
  for (const auto& a : steps)
    to += std::string{&a == &steps.front() ? prefix : ", "} + to_string(a);
}

} // namespace

woven_action weave(pass_pieces<float> pass, weaving options) {
  woven_action result;
  result.pieces.reserve(pass.size() + (options.sums ? 1 : 0));
  for (auto& p : pass)
    result.pieces.push_back({.layer = p.layer,
                             .share = p.share,
                             .run = std::move(p.run),
                             .completes = std::move(p.completes)});
  add_collectives(pass, result.pieces);
  if (options.by_layer())
    add_layers(options, result);
  return result;
}

std::string to_string(const woven_action& woven) {
  std::string result;
  add_line(result, "begins ", woven.begins);
  if (!result.empty())
    result += '\n';
  for (const auto& p : woven.pieces) {
    result += p.layer >= 0 ? "layer " + std::to_string(p.layer) : "piece";
    add_line(result, "; needs ", p.needs);
    add_line(result, "; begins ", p.begins);
    add_line(result, "; ends in ", p.ends_in);
    result += '\n';
  }
  return result;
}

} // namespace troupe
