// SPDX-License-Identifier: BSD-3-Clause
#include "planner/graph.hpp"

#include <algorithm>
#include <unordered_set>

namespace troupe::planner {

bool operator_set::empty() const {
  return std::ranges::all_of(words_, [](std::uint64_t word) { return word == 0; });
}

int operator_set::count() const {
  int result = 0;
  for (const auto word : words_)
    result += std::popcount(word);
  return result;
}

std::vector<int> operator_set::members() const {
  std::vector<int> result;
  int first = 0;
  for (auto word : words_) {
    for (; word != 0; word &= word - 1)
      result.push_back(first + std::countr_zero(word));
    first += bits;
  }
  return result;
}

bool operator_set::is_subset_of(const operator_set& other) const {
  for (std::size_t i = 0; i < words_.size(); ++i)
    if ((words_[i] & ~other.words_[i]) != 0)
      return false;
  return true;
}

bool operator_set::intersects(const operator_set& other) const {
  for (std::size_t i = 0; i < words_.size(); ++i)
    if ((words_[i] & other.words_[i]) != 0)
      return true;
  return false;
}

operator_set& operator_set::operator|=(const operator_set& other) {
  for (std::size_t i = 0; i < words_.size(); ++i)
    words_[i] |= other.words_[i];
  return *this;
}

operator_set operator_set::without(const operator_set& other) const {
  auto result = *this;
  for (std::size_t i = 0; i < words_.size(); ++i)
    result.words_[i] &= ~other.words_[i];
  return result;
}

std::size_t operator_set::hash() const {
  std::uint64_t result = 0x9e3779b97f4a7c15;
  for (const auto word : words_) {
    result = (result ^ word) * 0xbf58476d1ce4e5b9;
    result ^= result >> 29;
  }
  return static_cast<std::size_t>(result);
}

std::optional<std::vector<operator_set>>
ideals_of(int operators, const std::vector<edge>& edges, std::size_t most) {
  std::vector<operator_set> inputs(static_cast<std::size_t>(operators),
                                   operator_set{operators});
  for (const auto& [from, to] : edges)
    inputs[static_cast<std::size_t>(to)].add(from);
  const auto hash = [](const operator_set& set) { return set.hash(); };
  std::vector<operator_set> result{operator_set{operators}};
  // Sets of one size follow one another: each size comes from the size before.
  for (std::size_t begin = 0, end = 1; begin < end; begin = end, end = result.size()) {
    std::unordered_set<operator_set, decltype(hash)> seen{16, hash};
    for (auto i = begin; i < end; ++i)
      for (int o = 0; o < operators; ++o) {
        if (result[i].has(o)
            || !inputs[static_cast<std::size_t>(o)].is_subset_of(result[i]))
          continue;
        auto larger = result[i];
        larger.add(o);
        if (!seen.insert(larger).second)
          continue;
        if (result.size() >= most)
          return std::nullopt;
        result.push_back(std::move(larger));
      }
  }
  return result;
}

std::vector<operator_set> reachable(int operators, const std::vector<edge>& edges) {
  std::vector<operator_set> result(static_cast<std::size_t>(operators),
                                   operator_set{operators});
  auto sorted = edges;
  std::ranges::sort(sorted, std::ranges::greater{}, &edge::from);
  for (const auto& [from, to] : sorted) {
    result[static_cast<std::size_t>(from)] |= result[static_cast<std::size_t>(to)];
    result[static_cast<std::size_t>(from)].add(to);
  }
  return result;
}

std::string chain_error(int operators, const std::vector<edge>& edges,
                        const std::vector<std::vector<int>>& parts) {
  std::vector<int> where(static_cast<std::size_t>(operators), -1);
  int placed = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].empty())
      return "part " + std::to_string(p) + " is empty";
    for (const int o : parts[p]) {
      if (o < 0 || o >= operators)
        return "there is no operator " + std::to_string(o);
      if (where[static_cast<std::size_t>(o)] >= 0)
        return "operator " + std::to_string(o) + " has two places";
      where[static_cast<std::size_t>(o)] = static_cast<int>(p);
      ++placed;
    }
  }
  if (placed != operators)
    return "an operator has no place";
  for (const auto& [from, to] : edges)
    if (where[static_cast<std::size_t>(from)] > where[static_cast<std::size_t>(to)])
      return "edge " + std::to_string(from) + "-" + std::to_string(to) + " leads back";
  return {};
}

} // namespace troupe::planner
