// SPDX-License-Identifier: BSD-3-Clause
// The meetings between the pieces of a pass: pictures of actions, and properties of
// all.

#include "actors/rank/weave.hpp"

#include "actors/meetings/layer_meeting.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::weave_test {

namespace {

using kind = shard_collective<float>::kind;

/// A piece of a layer, and the meeting that follows the piece.
pass_piece<float> piece_of(int layer, kind then = kind::none) {
  return {.layer = layer, .collective = {then}};
}

/// A pass with one piece for each layer.
pass_pieces<float> layers(const std::vector<int>& order) {
  pass_pieces<float> result;
  for (const int layer : order)
    result.push_back(piece_of(layer));
  return result;
}

std::string picture(pass_pieces<float> pass, weaving with = {}) {
  return to_string(weave(std::move(pass), with));
}

constexpr weaving zero2{.sums = true}, zero3_forward{.gathers = true},
  zero3_backward{.gathers = true, .sums = true};

} // namespace

TEST_CASE("an action that meets nobody is its pieces, one after another", "[weave]") {
  CHECK(picture({{}}) == "piece\n");
  CHECK(picture(layers({1, 0}))
        == "layer 1\n"
           "layer 0\n");
}

TEST_CASE("by ZeRO 3 the next layer travels while one is computed on", "[weave]") {
  CHECK(picture(layers({0, 1, 2}), zero3_forward)
        == "begins gather 0\n"
           "layer 0; needs gather 0; begins gather 1\n"
           "layer 1; needs gather 1; begins gather 2\n"
           "layer 2; needs gather 2\n");
  CHECK(picture(layers({2, 1, 0}), zero3_backward)
        == "begins gather 2\n"
           "layer 2; needs gather 2; begins gather 1; ends in sum 2\n"
           "layer 1; needs gather 1; begins gather 0; ends in sum 1\n"
           "layer 0; needs gather 0, sum 2; ends in sum 0\n"
           "piece; needs sum 1, sum 0\n");
  CHECK(picture(layers({0}), zero3_forward)
        == "begins gather 0\n"
           "layer 0; needs gather 0\n");
  CHECK(picture(layers({0}), zero3_backward)
        == "begins gather 0\n"
           "layer 0; needs gather 0; ends in sum 0\n"
           "piece; needs sum 0\n");
}

TEST_CASE("by ZeRO 2 gradients are summed behind each layer, and two layers at once",
          "[weave]") {
  CHECK(picture(layers({3, 2, 1, 0}), zero2)
        == "layer 3; ends in sum 3\n"
           "layer 2; ends in sum 2\n"
           "layer 1; needs sum 3; ends in sum 1\n"
           "layer 0; needs sum 2; ends in sum 0\n"
           "piece; needs sum 1, sum 0\n");
  CHECK(picture(layers({0}), zero2)
        == "layer 0; ends in sum 0\n"
           "piece; needs sum 0\n");
}

TEST_CASE("what shards do after a piece the next one waits for", "[weave]") {
  CHECK(picture({piece_of(0, kind::sum), piece_of(0, kind::sum), piece_of(1),
                 piece_of(1, kind::gather), piece_of(1)})
        == "layer 0; ends in shards 0\n"
           "layer 0; needs shards 0; ends in shards 1\n"
           "layer 1; needs shards 1\n"
           "layer 1; ends in shards 2\n"
           "layer 1; needs shards 2\n");
}

TEST_CASE("experts answer before the next piece", "[weave]") {
  CHECK(picture({piece_of(0), piece_of(1, kind::experts), piece_of(1),
                 piece_of(3, kind::experts), piece_of(3)})
        == "layer 0\n"
           "layer 1; ends in experts 0\n"
           "layer 1; needs experts 0\n"
           "layer 3; ends in experts 1\n"
           "layer 3; needs experts 1\n");
}

TEST_CASE("shards meet within layers that data replicas share out", "[weave]") {
  CHECK(
    picture({piece_of(1, kind::sum), piece_of(1), piece_of(0, kind::sum), piece_of(0)},
            zero3_backward)
    == "begins gather 1\n"
       "layer 1; needs gather 1; begins gather 0; ends in shards 0\n"
       "layer 1; needs shards 0; ends in sum 1\n"
       "layer 0; needs gather 0; ends in shards 1\n"
       "layer 0; needs shards 1; ends in sum 0\n"
       "piece; needs sum 1, sum 0\n");
}

TEST_CASE("pieces keep their work, and say what they end in", "[weave]") {
  int ran = 0;
  pass_pieces<float> pass{piece_of(1, kind::experts), piece_of(1), piece_of(0)};
  pass[1].share = 0.25;
  pass[1].run = [&] { ++ran; };
  pass[1].completes = {4, 7};
  const auto all = weave(pass, {}), by_layer = weave(pass, zero2);
  CHECK(all.pieces[1].share == 0.25);
  CHECK(all.pieces[1].completes == std::vector{4, 7});
  all.pieces[1].run();
  CHECK(ran == 1);
  const auto ends = [](const woven_action& what) {
    std::vector<int> result;
    for (const auto& p : what.pieces)
      result.push_back(p.end);
    return result;
  };
  CHECK(ends(all) == std::vector<int>{experts_asked, nothing, nothing});
  CHECK(ends(by_layer)
        == std::vector<int>{experts_asked, layer_ends, layer_ends, nothing});
  CHECK(by_layer.pieces.back().share == 0);
  CHECK(ends(weave({piece_of(0, kind::scatter), piece_of(0)}, {}))
        == std::vector<int>{shards_meet, nothing});
}

namespace {

/// A random pass: layers up or down, in up to three pieces each.
pass_pieces<float> random_pass(std::mt19937& chance) {
  constexpr kind kinds[] = {kind::none, kind::sum, kind::gather, kind::scatter};
  const int count = 1 + static_cast<int>(chance() % 6);
  const bool up = chance() % 2 == 0, experts = chance() % 2 == 0;
  pass_pieces<float> result;
  for (int i = 0; i < count; ++i)
    for (auto left = 1 + chance() % 3; left > 0; --left) {
      const auto what = kinds[chance() % 4];
      result.push_back(piece_of(up ? i : count - 1 - i,
                                experts && what != kind::none ? kind::experts : what));
    }
  result.back().collective = {};
  return result;
}

bool has(const meeting_steps& all, const meeting_step& a) {
  return std::ranges::count(all, a) == 1;
}

/// Goes through an action, and checks begun meetings. Every needed meeting has begun
/// before, and exactly once; every meeting that has begun is needed.
void check_appointments(const woven_action& what) {
  meeting_steps begun = what.begins, needed;
  const auto begin = [&](const meeting_steps& all) {
    for (const auto& a : all) {
      CHECK_FALSE(has(begun, a));
      begun.push_back(a);
    }
  };
  for (const auto& p : what.pieces) {
    for (const auto& a : p.needs)
      CHECK(has(begun, a));
    needed.insert(needed.end(), p.needs.begin(), p.needs.end());
    begin(p.begins);
    begin(p.ends_in);
  }
  for (const auto& a : begun)
    CHECK(has(needed, a));
}

/// Two layers at once have a buffer for parameters, and one for gradients: even layers
/// the first, odd layers the second. Goes through a pass, and checks that a layer needs
/// exactly the meetings that fill its buffers.
void check_places(const woven_action& what, weaving with) {
  const auto gather = [](int layer) {
    return meeting_step{meeting_kind::layers, layer_meeting::gather_of(layer)};
  };
  const auto sum = [](int layer) {
    return meeting_step{meeting_kind::layers, layer_meeting::sum_of(layer)};
  };
  int gathered[] = {-1, -1}, summed[] = {-1, -1}, last = -1;
  if (with.gathers)
    gathered[what.pieces.front().layer % 2] = what.pieces.front().layer;
  for (const auto& p : what.pieces) {
    if (p.layer < 0) { // the end
      CHECK(std::ssize(p.needs) == (summed[0] >= 0) + (summed[1] >= 0));
      for (const int layer : summed)
        CHECK((layer < 0 || has(p.needs, sum(layer))));
      continue;
    }
    const int place = p.layer % 2;
    const bool first = std::exchange(last, p.layer) != p.layer;
    const bool holds_other = summed[place] >= 0;
    CHECK(has(p.needs, gather(p.layer)) == (with.gathers && first));
    CHECK((!with.gathers || gathered[place] == p.layer));
    CHECK(std::ranges::count_if(p.needs,
                                [](const meeting_step& a) {
                                  return a.kind == meeting_kind::layers
                                         && a.index % 2 == 1;
                                })
          == (first && holds_other));
    if (first && holds_other)
      CHECK(has(p.needs, sum(std::exchange(summed[place], -1))));
    for (const auto& a : p.begins) {
      gathered[a.index / 2 % 2] = a.index / 2;
      CHECK(a.index / 2 % 2 != place); // the buffer being read
    }
    for (const auto& a : p.ends_in)
      if (a.kind == meeting_kind::layers)
        summed[place] = p.layer;
  }
}

} // namespace

TEST_CASE(
  "whatever a pass is, nothing is needed that has not begun, and no layer waits "
  "for a place that is free",
  "[weave]") {
  std::mt19937 chance{12};
  for (int i = 0; i < 300; ++i) {
    const auto pass = random_pass(chance);
    const weaving with{chance() % 2 == 0, chance() % 2 == 0};
    const auto woven = weave(pass, with);
    INFO(to_string(woven));
    CHECK(woven.pieces.size() == pass.size() + (with.sums ? 1 : 0));
    check_appointments(woven);
    if (with.by_layer())
      check_places(woven, with);
    // A layer begins the gathering of the next layer when the layer itself starts.
    for (std::size_t p = 0; p + 1 < pass.size() && with.gathers; ++p)
      if (pass[p].layer != pass[p + 1].layer) {
        const auto first =
          std::ranges::find(woven.pieces, pass[p].layer, &piece::layer);
        CHECK(has(first->begins,
                  {meeting_kind::layers, layer_meeting::gather_of(pass[p + 1].layer)}));
      }
  }
}

TEST_CASE("every kind of meeting has a name of its own in what is woven", "[weave]") {
  std::set<std::string> names;
  for (int kind = 0; kind < meeting_kinds; ++kind)
    names.insert(to_string(
      woven_action{.begins = {{static_cast<meeting_kind>(kind), 4}}, .pieces = {}}));
  CHECK(names.size() == meeting_kinds);
  CHECK(names.contains("begins own 4\n"));
  CHECK(names.contains("begins gather 2\n"));
}

} // namespace troupe::weave_test
