// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One measured number, a line of a benchmark's output.
struct measurement {
  /// A name of parts_of_bench() (experiments/options/bench_options.hpp), "products", or
  /// "beside PyTorch".
  std::string part;
  std::string name;
  double value; ///< For times and rates the median, unless `name` says mean.
  std::string unit;
  /// The ratio of this value to the yardstick `fraction_of`, which the same program
  /// measured, mostly in turns with this value. Absent without a yardstick.
  std::optional<double> fraction;
  std::string fraction_of; ///< Name of the yardstick; empty if `fraction` is absent.
};

/// Seconds that one call of `work` takes.
template <class Work>
double seconds_of(const Work& work) {
  using namespace std::chrono;
  const auto start = steady_clock::now();
  work();
  return duration<double>(steady_clock::now() - start).count();
}

/// Keeps this thread's core busy for `length`, as an action does.
inline void compute_for(std::chrono::milliseconds length) {
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end)
    continue;
}

/// The median; of an even number of values the lower of the middle two.
/// \pre !values.empty()
inline double median(std::vector<double> values) {
  const auto middle =
    values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Median times of two kinds of work that took turns, so that both saw the machine in
/// the same state.
struct side_by_side {
  double first, second; ///< Seconds of a call.
};

/// Calls `first` and `second` in turn until all calls have taken `seconds` together, at
/// least 5 times each. One call of each comes before, to warm up.
template <class First, class Second>
side_by_side take_turns(const First& first, const Second& second,
                        double seconds = 0.3) {
  first();
  second();
  std::vector<double> of_first, of_second;
  for (double spent = 0; spent < seconds || of_first.size() < 5;
       spent += of_first.back() + of_second.back()) {
    of_first.push_back(seconds_of(first));
    of_second.push_back(seconds_of(second));
  }
  return {median(std::move(of_first)), median(std::move(of_second))};
}

} // namespace troupe
