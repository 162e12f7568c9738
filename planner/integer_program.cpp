// SPDX-License-Identifier: BSD-3-Clause
#include "planner/integer_program.hpp"

#include "planner/other_process.hpp"
#include "planner/time_limit.hpp"

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

namespace troupe::planner {

namespace {

std::string bytes_of(const solved_program& program) {
  std::string result{static_cast<char>(program.end)};
  if (program.values)
    result.append(reinterpret_cast<const char*>(program.values->data()),
                  program.values->size() * sizeof(double));
  return result;
}

/// \pre bytes_of() of a programme with columns
solved_program program_of(const std::string& bytes) {
  solved_program result{.end = static_cast<search_end>(bytes.front())};
  if (bytes.size() > 1) {
    result.values.emplace((bytes.size() - 1) / sizeof(double));
    std::memcpy(result.values->data(), bytes.data() + 1, bytes.size() - 1);
  }
  return result;
}

} // namespace

void tell_end(search_end end, answer& to) {
  to.out_of_time = end == search_end::out_of_time;
  if (end == search_end::failed)
    to.remark =
      "the solver of integer programmes did not run to an end: the plan may not be "
      "the best";
}

int integer_program::add_column(double cost, double lower, double upper,
                                bool is_whole) {
  if (is_whole)
    whole_.push_back(columns());
  cost_.push_back(cost);
  lower_.push_back(lower);
  upper_.push_back(upper);
  terms_.emplace_back();
  return columns() - 1;
}

void integer_program::add_row(const std::vector<std::pair<int, double>>& terms,
                              double lower, double upper) {
  const auto row = static_cast<int>(row_lower_.size());
  for (const auto& [column, factor] : terms) {
    auto& entries = terms_[static_cast<std::size_t>(column)];
    if (!entries.empty() && entries.back().first == row)
      entries.back().second += factor;
    else
      entries.emplace_back(row, factor);
  }
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
}

solved_program integer_program::best_found(double most_seconds) const {
  const time_limit time{most_seconds};
  for (const char* const tolerance : {"1e-10", "1e-7"}) {
    const double left = time.left();
    if (left <= 0)
      return {.end = search_end::out_of_time};
    const auto bytes =
      in_other_process([&] { return bytes_of(solved(left, tolerance)); }, left);
    if (bytes)
      return program_of(*bytes);
  }
  return {.end = time.is_over() ? search_end::out_of_time : search_end::failed};
}

solved_program integer_program::solved(double most_seconds,
                                       const char* tolerance) const {
  std::vector<CoinBigIndex> begins;
  std::vector<int> rows;
  std::vector<double> factors;
  for (const auto& entries : terms_) {
    begins.push_back(static_cast<CoinBigIndex>(rows.size()));
    for (const auto& [row, factor] : entries) {
      rows.push_back(row);
      factors.push_back(factor);
    }
  }
  begins.push_back(static_cast<CoinBigIndex>(rows.size()));
  const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model{Cbc_newModel(),
                                                               Cbc_deleteModel};
  auto* const solver = model.get();
  Cbc_setLogLevel(solver, 0);
  Cbc_loadProblem(solver, columns(), static_cast<int>(row_lower_.size()), begins.data(),
                  rows.data(), factors.data(), lower_.data(), upper_.data(),
                  cost_.data(), row_lower_.data(), row_upper_.data());
  for (const int column : whole_)
    Cbc_setInteger(solver, column);
  // CBC would accept a plan a little worse than the best otherwise.
  Cbc_setParameter(solver, "increment", "1e-9");
  Cbc_setParameter(solver, "dualTolerance", tolerance);
  Cbc_setParameter(solver, "slogLevel", "0");      // of the linear solver
  Cbc_setParameter(solver, "timeMode", "elapsed"); // not processor time
  Cbc_setMaximumSeconds(solver, most_seconds);
  Cbc_solve(solver);
  if (Cbc_isProvenInfeasible(solver) != 0)
    return {.end = search_end::proved};
  const auto end = Cbc_isProvenOptimal(solver) != 0         ? search_end::proved
                   : Cbc_isSecondsLimitReached(solver) != 0 ? search_end::out_of_time
                                                            : search_end::failed;
  const double* const values = Cbc_bestSolution(solver);
  if (!values) // "optimal" without values is an error of the solver
    return {.end = end == search_end::proved ? search_end::failed : end};
  solved_program result{.values = std::vector<double>(values, values + columns()),
                        .end = end};
  for (const int column : whole_) {
    auto& value = (*result.values)[static_cast<std::size_t>(column)];
    value = std::round(value);
  }
  return result;
}

} // namespace troupe::planner
