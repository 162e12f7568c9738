// SPDX-License-Identifier: BSD-3-Clause
// Tarnawski's integer programme: a column for each operator and device, one for the
// largest load. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN
// Graph Operators", NeurIPS 2020, section 4 and figure 4.
//
//   x(o, d)    operator o is on device d
//   in(o, d)   the output of o is read on d, and made elsewhere
//   out(o, d)  the output of o is made on d, and read elsewhere
//   z(o, d)    d has o or operators behind o: with z, parts are contiguous

#include "planner/integer_program.hpp"
#include "planner/searches/searches.hpp"
#include "planner/time_limit.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace troupe::planner {

namespace {

constexpr int usual_seconds = 8;
constexpr double tolerance = 1e-6; // of the solver, relative to a load

struct device_of_kind {
  bool on_cpu = false;
  int number = 0; // among devices of the kind
};

/// The end of a search for parts.
struct found_parts {
  std::optional<tarnawski_plan> best; ///< Absent: none were found.
  search_end end = search_end::failed;
};

class tarnawski_program {
public:
  /// \param bound a load that a plan of the problem has, or infinite
  tarnawski_program(const tarnawski_problem& problem, double bound)
    : problem_(problem), bound_(bound * rounding) {
    for (int a = 0; a < problem.accelerators; ++a)
      devices_.push_back({false, a});
    for (int c = 0; c < problem.cpus; ++c)
      devices_.push_back({true, c});
    scale_ = bound;
    if (bound == infinite) {
      scale_ = 0;
      for (const auto& o : problem.operators)
        scale_ += o.accelerator + o.cpu + o.transfer;
    }
    if (scale_ == 0)
      scale_ = 1;
    add_operators();
    largest_load_ =
      program_.add_column(1, 0, bound == infinite ? infinite : bound_ / scale_, false);
    for (std::size_t d = 0; d < devices_.size(); ++d)
      add_device(d);
  }

  /// The best parts that the time allows.
  found_parts best(const time_limit& time) {
    // The solver's rows hold to 1e-7 of the memory. A part that needs more memory than
    // that by so little becomes a row of its own.
    while (!time.is_over()) {
      const auto found = program_.best_found(time.left());
      if (!found.values)
        return {.end = found.end};
      auto parts = parts_of(*found.values);
      if (!forbid_overfull(parts))
        return {.best = std::move(parts), .end = found.end};
    }
    return {.end = search_end::out_of_time};
  }

private:
  /// Loads are sums in another order than the judge's.
  static constexpr double rounding = 1 + 1e-9;

  const tarnawski_operator& at(std::size_t o) const { return problem_.operators[o]; }

  std::size_t count() const { return problem_.operators.size(); }

  /// A column for each set of operators that share a device, and each device.
  void add_operators() {
    std::map<int, std::size_t> first_of_colour;
    int sets = 0;
    for (std::size_t o = 0; o < count(); ++o) {
      const auto& colour = at(o).colour;
      const auto first = colour ? first_of_colour.emplace(*colour, o).first->second : o;
      if (first != o) {
        placed_.push_back(placed_[first]);
        continue;
      }
      auto& columns = placed_.emplace_back();
      std::vector<std::pair<int, double>> places;
      for (const auto& device : devices_) {
        // Devices of a kind are equal: the first set is on the first, the second set on
        // the first or second.
        columns.push_back(
          program_.add_column(0, 0, device.number > sets ? 0 : 1, true));
        places.emplace_back(columns.back(), 1);
      }
      program_.add_row(places, 1, 1);
      ++sets;
    }
  }

  /// Adds a column's time to a load. A time beyond the bound excludes the column.
  void add_time(int column, double time, std::map<int, double>& load) {
    if (time > bound_)
      program_.exclude(column);
    else
      load[column] += time / scale_;
  }

  /// Bounds the load and the memory of a device.
  void add_device(std::size_t d) {
    const bool on_cpu = devices_[d].on_cpu;
    std::map<int, double> load, size;
    for (std::size_t o = 0; o < count(); ++o) {
      const int column = placed_[o][d];
      const double time = on_cpu ? at(o).cpu : at(o).accelerator;
      add_time(column, time, load);
      if (on_cpu)
        continue;
      if (!at(o).accelerator_can || at(o).size > problem_.memory)
        program_.exclude(column);
      else
        size[column] += at(o).size / (problem_.memory > 0 ? problem_.memory : 1);
    }
    if (!on_cpu) {
      program_.add_row({size.begin(), size.end()}, -infinite,
                       problem_.memory > 0 ? 1 : 0);
      add_transfers(d, load);
    }
    load[largest_load_] = -1;
    program_.add_row({load.begin(), load.end()}, -infinite, 0);
    if (problem_.split == tarnawski_split::contiguous)
      add_contiguity(d);
  }

  void add_transfers(std::size_t d, std::map<int, double>& load) {
    std::map<int, std::pair<int, int>> columns; // in and out, by operator
    std::set<std::pair<int, int>> seen;         // an operator, and a reader's column
    for (const auto& [from, to] : problem_.edges) {
      const auto sender = static_cast<std::size_t>(from);
      const int made = placed_[sender][d];
      const int read = placed_[static_cast<std::size_t>(to)][d];
      if (at(sender).transfer == 0 || made == read || !seen.emplace(from, read).second)
        continue;
      if (!columns.contains(from)) {
        const int in = program_.add_column(0, 0, 1, false);
        const int out = program_.add_column(0, 0, 1, false);
        columns[from] = {in, out};
        add_time(in, at(sender).transfer, load);
        add_time(out, at(sender).transfer, load);
      }
      const auto [in, out] = columns[from];
      program_.add_row({{in, 1}, {read, -1}, {made, 1}}, 0, infinite);
      program_.add_row({{out, 1}, {made, -1}, {read, 1}}, 0, infinite);
    }
  }

  /// A path that leaves a device does not come back.
  void add_contiguity(std::size_t d) {
    std::vector<int> behind(count(), -1);
    for (std::size_t o = 0; o < count(); ++o)
      if (!at(o).backward) {
        behind[o] = program_.add_column(0, 0, 1, false);
        program_.add_row({{behind[o], 1}, {placed_[o][d], -1}}, 0, infinite);
      }
    for (const auto& [from, to] : problem_.edges) {
      const auto u = static_cast<std::size_t>(from), v = static_cast<std::size_t>(to);
      if (at(u).backward || at(v).backward)
        continue;
      program_.add_row({{behind[v], 1}, {behind[u], -1}}, -infinite, 0);
      if (placed_[u][d] != placed_[v][d])
        program_.add_row({{behind[v], 1}, {placed_[v][d], -1}, {placed_[u][d], 1}},
                         -infinite, 1);
      else
        program_.add_row({{behind[v], 1}}, -infinite, 1);
    }
  }

  tarnawski_plan parts_of(const std::vector<double>& values) const {
    tarnawski_plan result;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      tarnawski_part part{.on_cpu = devices_[d].on_cpu};
      for (std::size_t o = 0; o < count(); ++o)
        if (values[static_cast<std::size_t>(placed_[o][d])] > 0.5)
          part.operators.push_back(static_cast<int>(o));
      if (!part.operators.empty())
        result.parts.push_back(std::move(part));
    }
    return result;
  }

  /// Adds rows for parts that need too much memory. Returns whether there were any.
  bool forbid_overfull(const tarnawski_plan& parts) {
    bool result = false;
    for (const auto& part : parts.parts) {
      double size = 0;
      for (const int o : part.operators)
        size += at(static_cast<std::size_t>(o)).size;
      if (part.on_cpu || size <= problem_.memory)
        continue;
      result = true;
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        if (devices_[d].on_cpu)
          continue;
        std::set<int> columns;
        for (const int o : part.operators)
          columns.insert(placed_[static_cast<std::size_t>(o)][d]);
        std::vector<std::pair<int, double>> terms;
        for (const int column : columns)
          terms.emplace_back(column, 1);
        program_.add_row(terms, -infinite, static_cast<double>(columns.size()) - 1);
      }
    }
    return result;
  }

  const tarnawski_problem& problem_;
  double bound_; // of loads
  std::vector<device_of_kind> devices_;
  std::vector<std::vector<int>> placed_; // columns by operator and device
  int largest_load_ = 0;                 // a column
  double scale_ = 1;                     // loads are in units of this
  integer_program program_;
};

} // namespace

outcome tarnawski_ip(const tarnawski_problem& problem, const search_options& options) {
  if (problem.split == tarnawski_split::pipeline)
    return tl::unexpected{
      std::string{"planner tarnawski_ip splits a graph contiguously or anyhow: take "
                  "tarnawski for the split pipeline"}};
  const int seconds = options.seconds.value_or(usual_seconds);
  const time_limit time{static_cast<double>(seconds)};
  // A pipeline is contiguous: the dynamic programme gives a first load.
  auto as_pipeline = problem;
  as_pipeline.split = tarnawski_split::pipeline;
  std::optional<tarnawski_plan> best;
  double bound = infinite;
  if (const auto first = tarnawski(as_pipeline, options); first && first->best) {
    best = std::get<tarnawski_plan>(*first->best);
    if (const auto load = cost(problem, *best))
      bound = *load;
    else
      best.reset();
  }
  auto end = search_end::out_of_time;
  // The load of a plan is the unit of the next search, until loads are near 1.
  double unit = infinite;
  do {
    unit = bound;
    auto found = tarnawski_program{problem, bound}.best(time);
    end = found.end;
    if (!found.best) {
      if (best && end == search_end::proved)
        end = search_end::failed; // the plan of the bound satisfies all rows
      break;
    }
    const auto load = cost(problem, *found.best);
    if (!load || *load > bound) { // the solver sees no better plan
      if (end == search_end::proved && !(load && *load <= bound * (1 + tolerance)))
        end = search_end::failed;
      break;
    }
    best = std::move(found.best);
    bound = *load;
  } while (unit > 2 * bound);
  if (!best && end == search_end::out_of_time)
    return tl::unexpected{"planner tarnawski_ip found no plan in "
                          + std::to_string(seconds)
                          + " s: give more seconds=, or take a smaller case"};
  if (!best && end == search_end::failed)
    return tl::unexpected{
      std::string{"planner tarnawski_ip found no plan, as its solver did not run to "
                  "its end: take a baseline as mincut"}};
  if (!best)
    return answer{};
  auto result = judged(problem, *best);
  if (result)
    tell_end(end, *result);
  return result;
}

} // namespace troupe::planner
