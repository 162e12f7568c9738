// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Times of operators that were not measured, learned from operators that were: a
// straight line for each kind of operator.

#include <tl/expected.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::planner {

/// An operator as a layer's text, "Conv2d(3, 64, kernel_size=(11, 11), stride=(4, 4))",
/// with its sizes. Elements are float32.
struct described_operator {
  std::string text; ///< Words before the layer, as a node's name, are ignored.
  double input_bytes = 0, output_bytes = 0, parameter_bytes = 0;

  /// The layer's name, as "Conv2d".
  std::string kind() const;

  /// Arithmetic operations of a forward. Conv2d and Linear need two for each product,
  /// a pooling layer one for each element of a window. Other kinds need one for each
  /// output element.
  double operations() const;

  double bytes() const { return input_bytes + output_bytes + parameter_bytes; }
};

struct operator_seconds {
  double forward = 0;
  double backward = 0;
};

struct measured_operator {
  std::string network;
  described_operator content;
  operator_seconds seconds;
};

/// Reads a CSV file with the header `model, operator, input_bytes, output_bytes,
/// parameter_bytes, forward_ms, backward_ms`. Texts with commas stand in double quotes.
/// The error is one sentence with the number of the line.
tl::expected<std::vector<measured_operator>, std::string>
read_measured_operators(const std::filesystem::path& path);

/// seconds = a operations + b bytes + c, with a, b, c of 0 or more.
struct cost_line {
  double an_operation = 0, a_byte = 0, constant = 0;

  double seconds(const described_operator& op) const;

  bool operator==(const cost_line&) const = default;
};

/// A line for forwards and one for backwards for each kind of operator. A kind that was
/// not measured has the lines of all kinds together.
class learned_costs {
public:
  /// Fits lines by least squares of relative errors. Times below 0.05 ms weigh as
  /// 0.05 ms. Qi, Sparks, Talwalkar, "Paleo", ICLR 2017, section 3.
  /// \pre an operator or more
  static learned_costs fit(const std::vector<measured_operator>& measured);

  /// Whether an operator of this kind was measured. The times of other kinds come from
  /// the line of all operators.
  bool knows(const std::string& kind) const { return kinds_.contains(kind); }

  operator_seconds predict(const described_operator& op) const;

  /// Writes a JSON file. The error is one sentence.
  tl::expected<void, std::string> save(const std::filesystem::path& path) const;

  /// Reads a file of `save`. The error is one sentence with the place of the mistake.
  static tl::expected<learned_costs, std::string>
  load(const std::filesystem::path& path);

  bool operator==(const learned_costs&) const = default;

private:
  struct line_pair {
    cost_line forward, backward;

    bool operator==(const line_pair&) const = default;
  };

  static line_pair fit_kind(const std::vector<const measured_operator*>& measured);

  std::map<std::string, line_pair> kinds_;
  line_pair any_kind_;
};

} // namespace troupe::planner
