// SPDX-License-Identifier: BSD-3-Clause
// Whole networks put together from the pieces that stages saved, and errors of pieces.

#include "actors/checkpoints/gathered_state.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <numeric>

namespace troupe::whole_training_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using kind = saved_array::kind;

network<float> tied_gpt() {
  auto model = tiny::gpt();
  model.tied = true;
  return tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::virtual_time, model)
    .work->whole;
}

/// All of a parameter, with values that count from `first`.
std::pair<saved_piece, std::vector<float>> all_of(const parameter& p, float first) {
  std::vector<float> values(static_cast<std::size_t>(p.values()));
  std::iota(values.begin(), values.end(), first);
  return {{0, 0, p, 0, p.values()}, std::move(values)};
}

/// Puts every parameter but one into the gathered state.
void put_all(gathered_state& to, const network<float>& of, const saved_array& array,
             const std::string& but = {}, float first = 0) {
  for (const auto& layer : of.layers)
    for (const auto& p : layer->parameters())
      if (p.tied_to.empty() && p.name != but) {
        const auto [piece, values] = all_of(p, first);
        REQUIRE(to.put(array, piece, values).empty());
      }
}

const std::string word = "transformer.wpe.weight";

} // namespace

TEST_CASE("a whole training has each value once", "[checkpoint]") {
  const auto whole = tied_gpt();
  gathered_state all{whole, 0, {}};
  put_all(all, whole, {}, word);
  SECTION("nothing of a parameter") {
    CHECK_THAT(all.finish().error(),
               ContainsSubstring("parameters has 0 of the") && ContainsSubstring(word));
  }
  const auto* const p = all.find(word);
  REQUIRE(p != nullptr);
  auto [piece, values] = all_of(*p, 0);
  SECTION("all but one value") {
    piece.end -= 1;
    values.pop_back();
    CHECK(all.put({}, piece, values).empty());
    CHECK_THAT(all.finish().error(), ContainsSubstring(word));
  }
  SECTION("one value twice") {
    CHECK(all.put({}, piece, values).empty());
    piece.begin = piece.end - 1;
    CHECK_THAT(all.put({}, piece, {values.data(), 1}), ContainsSubstring("twice"));
  }
  SECTION("by rows and columns") {
    const auto columns = p->dims.back(), rows = p->values() / columns;
    for (const parameter_cut::range one : {parameter_cut::range{0, 1}, {1, columns}}) {
      auto part = only_part_of(*p);
      part.cut->columns = {one};
      part.dims.back() = one.end - one.begin;
      std::vector<float> held(static_cast<std::size_t>(part.values()));
      extract_part(part, values.data(), held.data());
      CHECK(all.put({}, {0, 0, part, 0, part.values()}, held).empty());
    }
    CHECK(rows > 1);
    const auto made = all.finish();
    REQUIRE(made);
    CHECK(std::equal(values.begin(), values.end(),
                     made->parameters[0].begin() + p->offset));
  }
}

TEST_CASE("pieces lie within a parameter that there is", "[checkpoint]") {
  const auto whole = tied_gpt();
  gathered_state all{whole, 0, {}};
  auto [piece, values] = all_of(*all.find(word), 0);
  piece.part.name = "transformer.nobody";
  CHECK_THAT(all.put({}, piece, values), ContainsSubstring("no parameter"));
  piece.part.name = word;
  piece.part.cut = parameter_cut{
    piece.part.dims[1], {1, piece.part.dims[0] + 1}, {{0, piece.part.dims[1]}}, 0};
  CHECK_THAT(all.put({}, piece, values), ContainsSubstring("within it"));
  piece.part.cut.reset();
  CHECK_THAT(all.put({}, piece, {values.data(), values.size() - 1}),
             ContainsSubstring("within it"));
  CHECK(all.find("lm_head.weight") == nullptr); // tied: has no values of its own
}

TEST_CASE("a tied copy and what no stage reads need no pieces", "[checkpoint]") {
  const auto whole = tied_gpt();
  gathered_state all{whole, 2, {"moment-0"}};
  put_all(all, whole, {}, {}, 1);
  put_all(all, whole, {kind::state, 0, "moment-0"}, {}, 5);
  const auto* const p = all.find(word);
  const auto [piece, values] = all_of(*p, 9);
  REQUIRE(all.put({kind::parameters, 2}, piece, values).empty());
  const auto made = all.finish();
  REQUIRE(made);
  REQUIRE(made->older.size() == 2);
  CHECK(made->older[0] == made->parameters);
  CHECK(made->older[1][0][static_cast<std::size_t>(p->offset)] == 9);
  CHECK(made->older[1][1] == made->parameters[1]);
  const auto& head = whole.layers.back()->parameter_called("lm_head.weight");
  const auto& first = whole.layers[0]->parameter_called("transformer.wte.weight");
  for (std::int64_t i = 0; i < head.values(); ++i) {
    const auto here = static_cast<std::size_t>(head.offset + i),
               there = static_cast<std::size_t>(first.offset + i);
    REQUIRE(made->parameters.back()[here] == made->parameters[0][there]);
    REQUIRE(made->state[0].values.back()[here] == made->state[0].values[0][there]);
  }
}

} // namespace troupe::whole_training_test
