// SPDX-License-Identifier: BSD-3-Clause
#include "planner/searches/enumeration.hpp"

#include "planner/graph.hpp"

#include <algorithm>

namespace troupe::planner {

namespace {

constexpr std::size_t most_ideals = 2'000;

class chain_visitor {
public:
  chain_visitor(const std::vector<operator_set>& ideals,
                const std::function<bool(const stage_chain&)>& visit)
    : ideals_(ideals), visit_(visit) {
    // nop
  }

  bool visit_from(std::size_t i, int most_stages) {
    if (i + 1 == ideals_.size())
      return visit_(stages_);
    if (most_stages == 0)
      return true;
    for (auto j = i + 1; j < ideals_.size(); ++j) {
      if (!ideals_[i].is_subset_of(ideals_[j]))
        continue;
      stages_.push_back(ideals_[j].without(ideals_[i]).members());
      const bool goes_on = visit_from(j, most_stages - 1);
      stages_.pop_back();
      if (!goes_on)
        return false;
    }
    return true;
  }

private:
  const std::vector<operator_set>& ideals_;
  const std::function<bool(const stage_chain&)>& visit_;
  stage_chain stages_;
};

bool visit_compositions(int total, int parts, std::vector<int>& numbers,
                        const std::function<bool(const std::vector<int>&)>& visit) {
  if (parts == 0)
    return total > 0 || visit(numbers);
  const int most = parts == 1 ? total : total - parts + 1;
  for (int first = parts == 1 ? std::max(total, 1) : 1; first <= most; ++first) {
    numbers.push_back(first);
    const bool goes_on = visit_compositions(total - first, parts - 1, numbers, visit);
    numbers.pop_back();
    if (!goes_on)
      return false;
  }
  return true;
}

} // namespace

bool for_each_chain(int operators, const std::vector<edge>& edges, int most_stages,
                    const std::function<bool(const stage_chain&)>& visit) {
  const auto ideals = ideals_of(operators, edges, most_ideals);
  return ideals && chain_visitor{*ideals, visit}.visit_from(0, most_stages);
}

bool for_each_composition(int total, int parts,
                          const std::function<bool(const std::vector<int>&)>& visit) {
  std::vector<int> numbers;
  return visit_compositions(total, parts, numbers, visit);
}

bool for_each_number(const std::vector<int>& bases,
                     const std::function<bool(const std::vector<int>&)>& visit) {
  if (std::ranges::any_of(bases, [](int base) { return base < 1; }))
    return true;
  std::vector<int> digits(bases.size());
  for (;;) {
    if (!visit(digits))
      return false;
    std::size_t i = 0;
    for (; i < digits.size() && digits[i] + 1 == bases[i]; ++i)
      digits[i] = 0;
    if (i == digits.size())
      return true;
    ++digits[i];
  }
}

} // namespace troupe::planner
