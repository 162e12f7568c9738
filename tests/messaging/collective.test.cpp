// SPDX-License-Identifier: BSD-3-Clause
// The arrays after collectives, compared with plain loops, to the bit.

#include "messaging/collective.hpp"

#include "messaging/sum_in_order.hpp"
#include "tests/messaging/post_office.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <bit>
#include <cmath>
#include <cstring>

namespace troupe::collective_test {

using namespace post_office;

namespace {

bool same_bits(const std::vector<float>& array, const collective_outcome& expected) {
  return expected.values.empty()
         || std::memcmp(array.data() + expected.begin, expected.values.data(),
                        expected.values.size() * sizeof(float))
              == 0;
}

/// The values of messages that the steps of all ranks add, by the order alone.
std::int64_t values_to_add(const collective_order& order,
                           const std::vector<collective_part>& parts) {
  const int count = static_cast<int>(parts.size());
  std::int64_t result = 0;
  for (const auto& part : parts)
    for (int i = 0; i < order.steps(count); ++i)
      if (const auto step = order.step(part.rank, count, i);
          step.from != nobody && step.use == reception::add)
        result += part.target.size(step.received);
  return result;
}

/// Runs a collective with messages that arrive by chance, and compares all ranks.
void check(const collective_order& order, const std::vector<collective_part>& parts,
           unsigned seed, sums_by adder = sums_by::itself) {
  const auto arrays =
    random_arrays(static_cast<int>(parts.size()), parts[0].source.values(), seed);
  const auto views = views_of(arrays);
  const auto expected = plain_collective(order, views, parts[0].source, parts[0].root);
  ranks all{parts, arrays, adder};
  all.run(seed);
  INFO(name_of(order.operation)
       << " by " << order.name << ", " << parts.size() << " ranks, root "
       << parts[0].root << ", " << parts[0].source.values() << " values, seed "
       << seed);
  REQUIRE(all.done());
  bool same = true;
  for (std::size_t r = 0; r < parts.size(); ++r)
    same = same && same_bits(all.members[r]->target(), expected[r]);
  CHECK(same);
  if (parts.size() == 1)
    CHECK(all.messages == 0);
  if (adder == sums_by::itself)
    return;
  CHECK(all.values_added == values_to_add(order, parts));
  for (const auto& m : all.members)
    CHECK(m->never_done_early);
}

} // namespace

TEST_CASE("a collective gives the bits of a plain loop, however its messages arrive",
          "[collective]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  for (const int count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16})
    for (const std::int64_t values : {0, 1, 3, 37, 203})
      for (unsigned seed = 0; seed < 3; ++seed)
        check(order, even_parts(order, count, values), seed);
}

namespace {

/// Rounds to bf16 by the definition: to eight significant bits, ties to even.
class plain_bf16 final : public codec {
public:
  void encode(float*, std::int64_t, float*, std::int64_t) override { FAIL(); }
  void decode(const float*, std::int64_t, std::int64_t, float*) const override {
    FAIL();
  }
  void add(const float*, std::int64_t, std::int64_t, float*) const override { FAIL(); }
  float coded(float value) const override {
    int exponent = 0;
    const double mantissa = std::frexp(static_cast<double>(value), &exponent);
    return static_cast<float>(
      std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
  }
};

} // namespace

TEST_CASE("ranks agree on sums in bf16, whose terms are rounded, at half the bytes",
          "[collective]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  const bool all = order.operation == collective_operation::all_reduce;
  if (!all && order.operation != collective_operation::reduce_scatter)
    return;
  const auto adder = GENERATE(sums_by::itself, sums_by::caller);
  plain_bf16 plain;
  for (const int count : {1, 2, 3, 4, 5, 8})
    for (const std::int64_t values : {1, 3, 37, 203}) {
      if ((order.name == "doubling" || (order.name == "halving" && !all))
          && std::popcount(static_cast<unsigned>(count)) > 1) {
        auto part = even_part(order, 0, count, values);
        part.coding = find_codec("bf16");
        CHECK_THROWS_AS(collective{part}, std::logic_error);
        continue;
      }
      INFO(name_of(order.operation) << " by " << order.name << ", " << count
                                    << " ranks, " << values << " values");
      auto parts = even_parts(order, count, values);
      const auto arrays = random_arrays(count, values, 5);
      ranks by_fp32{parts, arrays, adder};
      by_fp32.run(1);
      for (auto& part : parts)
        part.coding = find_codec("bf16");
      ranks some{parts, arrays, adder};
      some.run(2);
      REQUIRE(some.done());
      CHECK(some.messages == by_fp32.messages);
      CHECK(some.bytes >= by_fp32.bytes / 2);
      CHECK(some.bytes <= by_fp32.bytes / 2 + 2 * some.messages);
      auto sum = sum_in_order(order.name, views_of(arrays), parts[0].source, &plain);
      if (all && count > 1 && order.name != "naive" && order.name != "doubling")
        for (auto& value : sum)
          value = plain.coded(value);
      for (int r = 0; r < count; ++r) {
        const auto begin = all ? 0 : parts[0].source.begin(r),
                   end = all ? values : parts[0].source.begin(r + 1);
        const auto& target = some.members[static_cast<std::size_t>(r)]->target();
        CHECK(std::equal(target.begin() + begin, target.begin() + end,
                         sum.begin() + begin));
      }
    }
}

TEST_CASE("ranges that wrap around are encoded at odd offsets too", "[collective]") {
  plain_bf16 plain;
  for (const auto& order : collective_catalog())
    if (order.operation == collective_operation::scatter
        || order.operation == collective_operation::gather
        || order.operation == collective_operation::broadcast)
      for (const int root : {0, 2, 4})
        for (const std::int64_t values : {5, 37, 203}) {
          auto parts = even_parts(order, 5, values, root);
          for (auto& part : parts)
            part.coding = find_codec("bf16");
          auto arrays = random_arrays(5, values, 3);
          ranks some{parts, arrays};
          some.run(4);
          REQUIRE(some.done());
          for (auto& array : arrays)
            for (auto& value : array)
              value = plain.coded(value);
          const auto expected =
            plain_collective(order, views_of(arrays), parts[0].source, root);
          INFO(name_of(order.operation) << " by " << order.name << ", root " << root
                                        << ", " << values << " values");
          for (std::size_t r = 0; r < 5; ++r) {
            const auto& target = some.members[r]->target();
            for (std::size_t i = 0; i < expected[r].values.size(); ++i)
              CHECK(plain.coded(target[static_cast<std::size_t>(expected[r].begin) + i])
                    == expected[r].values[i]);
          }
        }
}

TEST_CASE("sums that a caller does, however late, leave the bits of a plain loop",
          "[collective]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  for (const int count : {1, 2, 3, 4, 5, 7, 8, 9})
    for (const std::int64_t values : {0, 3, 37, 203})
      for (unsigned seed = 0; seed < 3; ++seed)
        check(order, even_parts(order, count, values), seed, sums_by::caller);
}

TEST_CASE("a rank is done when its last sum is over", "[collective]") {
  collective root{even_part(tree_reduce(), 0, 2, 8), {}, sums_by::caller};
  root.begin();
  CHECK_FALSE(root.take_sum());
  CHECK_FALSE(root.sums());
  CHECK_THROWS_AS(root.end_sum(), std::logic_error);
  CHECK(root.receive({0, 0, 1, 0, {0, 1}, 8, {}}).empty());
  CHECK_FALSE(root.done());
  CHECK(root.sums());
  CHECK_FALSE(root.waits_for()); // no message is missing
  const auto sum = root.take_sum();
  REQUIRE(sum);
  CHECK(sum->values == 8);
  CHECK_FALSE(sum->run); // there are no arrays
  CHECK_FALSE(root.take_sum());
  CHECK_FALSE(root.done());
  CHECK(root.end_sum().empty());
  CHECK(root.done());
}

TEST_CASE("a rank of a ring sends a sum on when it is over", "[collective]") {
  collective part{even_part(ring_all_reduce(), 0, 3, 6), {}, sums_by::caller};
  CHECK(part.begin().size() == 1);
  CHECK(part.receive({0, 0, 2, 0, {1, 1}, 2, {}}).empty());
  CHECK(part.receive({0, 1, 2, 0, {0, 1}, 2, {}}).empty()); // kept
  const auto second = part.end_sum();
  REQUIRE(second.size() == 1);
  CHECK(second[0].round == 1);
  CHECK(part.sums()); // the message that came early
  CHECK(part.end_sum().size() == 1);
  CHECK_FALSE(part.sums());
  CHECK(part.waits_for()->round == 2);
  CHECK(part.receive({0, 2, 2, 0, {2, 1}, 2, {}}).size() == 1); // a copy
  CHECK_FALSE(part.sums());
}

TEST_CASE("any rank can be the root", "[collective]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  using enum collective_operation;
  if (order.operation == all_reduce || order.operation == reduce_scatter)
    return; // no root, and sums in another order
  for (const int count : {2, 3, 5, 8})
    for (int root = 0; root < count; ++root)
      check(order, even_parts(order, count, 29, root), 7);
}

TEST_CASE("chunks may be cut anywhere", "[collective]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  for (const int count : {2, 3, 5, 8}) {
    auto parts = even_parts(order, count, 0);
    std::vector<std::int64_t> sizes;
    for (int c = 0; c < order.chunks(count); ++c)
      sizes.push_back(c * 7 % 5); // some are empty
    for (auto& part : parts) {
      part.source = chunks::of_sizes(sizes);
      part.target = order.in_place
                      ? part.source
                      : chunks::even(part.source.size({part.rank, 1}) * count, count);
    }
    check(order, parts, 3);
  }
}

TEST_CASE("an all_to_all may exchange another number of values in each pair",
          "[collective]") {
  const auto order = pairwise_all_to_all();
  constexpr int count = 5;
  const auto tokens = [](int from, int to) -> std::int64_t {
    return (3 * from + 2 * to) % 7;
  };
  auto parts = even_parts(order, count, 0);
  std::vector<std::vector<float>> arrays;
  for (int r = 0; r < count; ++r) {
    std::vector<std::int64_t> out, in;
    std::vector<float> array;
    for (int other = 0; other < count; ++other) {
      out.push_back(tokens(r, other));
      in.push_back(tokens(other, r));
      array.insert(array.end(), static_cast<std::size_t>(out.back()),
                   static_cast<float>(10 * r + other));
    }
    parts[static_cast<std::size_t>(r)].source = chunks::of_sizes(out);
    parts[static_cast<std::size_t>(r)].target = chunks::of_sizes(in);
    arrays.push_back(std::move(array));
  }
  ranks all{parts, arrays};
  all.run(11);
  REQUIRE(all.done());
  for (int r = 0; r < count; ++r) {
    std::vector<float> expected;
    for (int other = 0; other < count; ++other)
      expected.insert(expected.end(), static_cast<std::size_t>(tokens(other, r)),
                      static_cast<float>(10 * other + r));
    CHECK(all.members[static_cast<std::size_t>(r)]->second == expected);
  }
}

TEST_CASE("algorithms sum in orders of their own", "[collective]") {
  // 1e8 + 1 is 1e8: the remaining ones show the order of additions.
  constexpr float big = 1e8F;
  const std::vector<std::vector<float>> arrays{
    {big, big, big, big}, {1, 1, 1, 1}, {-big, -big, -big, -big}, {1, 1, 1, 1}};
  const auto views = views_of(arrays);
  const auto sum = [&](const char* name) {
    return sum_in_order(name, views, chunks::even(4, 4));
  };
  CHECK(sum("naive") == std::vector<float>{1, 1, 1, 1});   // ((0 + 1) + 2) + 3
  CHECK(sum("tree") == std::vector<float>{0, 0, 0, 0});    // (0 + 1) + (2 + 3)
  CHECK(sum("halving") == std::vector<float>{2, 2, 2, 2}); // (0 + 2) + (1 + 3)
  CHECK(sum("doubling") == sum("halving"));
  CHECK(sum("ring")
        == std::vector<float>{0, 1, 0, 1}); // from 1, from 2, from 3, from 0
  CHECK_THROWS_AS(sum("zigzag"), std::logic_error);
}

TEST_CASE("a rank never needs more payloads than its bound", "[collective]") {
  const auto& order = GENERATE(from_range(collective_catalog()));
  for (const int count : {2, 3, 4, 6, 8, 9}) {
    const auto parts = even_parts(order, count, 64);
    const auto arrays = random_arrays(count, 64, 1);
    for (unsigned seed = 0; seed < 5; ++seed) {
      ranks all{parts, arrays};
      CHECK_NOTHROW(all.run(seed));
      for (const auto& m : all.members) {
        CHECK(m->memory.allocations() <= 1);
        CHECK(m->memory.peak()
              <= m->bound.buffers * m->bound.values * std::int64_t{sizeof(float)});
      }
    }
  }
  CHECK(payloads_of(even_part(naive_all_reduce(), 2, 8, 100)).buffers == 1);
  CHECK(payloads_of(even_part(tree_broadcast(), 0, 8, 100)).buffers == 1);
  CHECK(payloads_of(even_part(ring_all_reduce(), 2, 8, 800)).buffers == 14);
  CHECK(payloads_of(even_part(ring_all_reduce(), 2, 8, 800)).values == 100);
}

TEST_CASE("an array is its owner's again when its rank is done", "[collective]") {
  const auto parts = even_parts(tree_broadcast(), 2, 3);
  ranks all{parts, {{1, 2, 3}, {0, 0, 0}}};
  auto sent = all.members[0]->part.begin();
  REQUIRE(all.members[0]->part.done());
  all.members[0]->source = {7, 7, 7};
  all.members[1]->part.begin();
  all.members[1]->part.receive(std::move(sent.at(0)));
  CHECK(all.members[1]->source == std::vector<float>{1, 2, 3});
}

TEST_CASE("without arrays, messages have sizes only", "[collective]") {
  collective root{even_part(tree_broadcast(), 0, 4, 1000)};
  const auto sent = root.begin();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].bytes == 4000);
  CHECK_FALSE(sent[0].payload);
  CHECK(root.done());
}

TEST_CASE("a rank says whose message it waits for", "[collective]") {
  collective part{even_part(ring_all_reduce(), 1, 4, 8)};
  CHECK_FALSE(part.waits_for());
  part.begin();
  REQUIRE(part.waits_for());
  CHECK(part.waits_for()->from == 0);
  CHECK(part.waits_for()->round == 0);
}

TEST_CASE("a message that does not belong is refused", "[collective]") {
  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  const auto refused = [](collective_message message, const std::string& why) {
    collective part{even_part(ring_all_reduce(), 1, 4, 8)};
    part.begin();
    CHECK_THROWS_MATCHES(
      (part.receive(message), part.receive(message)), std::logic_error,
      MessageMatches(ContainsSubstring("rank 1") && ContainsSubstring(why)));
  };
  refused({5, 0, 0, 1, {3, 1}, 2, {}}, "collective 5");
  refused({0, 0, 0, 2, {3, 1}, 2, {}}, "to rank 2");
  refused({0, 0, 0, 1, {3, 1}, 3, {}}, "expected 2 values from rank 0, not 3");
  refused({0, 3, 0, 1, {3, 1}, 2, {}}, "twice");
  collective last{even_part(tree_reduce(), 1, 2, 8)};
  last.begin();
  REQUIRE(last.done());
  CHECK_THROWS_AS(last.receive({0, 0, 0, 1, {0, 1}, 8, {}}), std::logic_error);
  auto part = even_part(ring_all_reduce(), 1, 4, 8);
  part.target = chunks::even(8, 3);
  CHECK_THROWS_AS(collective{part}, std::logic_error);
}

} // namespace troupe::collective_test
