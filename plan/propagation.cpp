// SPDX-License-Identifier: BSD-3-Clause
#include "plan/propagation.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace troupe {

namespace {

using axis_name = std::optional<std::string>;

constexpr auto absent = std::string::npos;

class propagation {
public:
  propagation(const std::vector<einsum_operator>& operators,
              const tensor_layouts& annotated)
    : operators_(operators), annotated_(annotated) {
    for (const auto& op : operators) {
      for (std::size_t i = 0; i < op.inputs.size(); ++i)
        add(op.inputs[i], op.letters[i].size());
      add(op.output, op.output_letters.size());
    }
  }

  tensor_layouts run() {
    while (pass(true) || pass(false)) {
      // nop
    }
    return std::move(layouts_);
  }

private:
  void add(const std::string& tensor, std::size_t rank) {
    const auto given = annotated_.find(tensor);
    layouts_.try_emplace(tensor, given == annotated_.end() ? tensor_layout(rank)
                                                           : given->second);
  }

  axis_name axis_in(const std::string& tensor, const std::string& letters,
                    char letter) const {
    const auto dim = letters.find(letter);
    return dim == absent ? std::nullopt : layouts_.at(tensor)[dim];
  }

  // The first axis that an end of an operator has at an index; the output is last.
  axis_name first_axis(const einsum_operator& op, char letter) const {
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (auto found = axis_in(op.inputs[i], op.letters[i], letter))
        return found;
    return axis_in(op.output, op.output_letters, letter);
  }

  // Returns true if a dimension takes the axis.
  bool give(const std::string& tensor, const std::string& letters, char letter,
            const axis_name& axis) {
    const auto dim = letters.find(letter);
    if (!axis || dim == absent || annotated_.contains(tensor))
      return false;
    auto& layout = layouts_.at(tensor);
    if (layout[dim] || std::ranges::find(layout, axis) != layout.end())
      return false;
    layout[dim] = axis;
    return true;
  }

  bool pass_through(const einsum_operator& op) {
    std::string letters;
    for (const auto& input : op.letters)
      letters += input;
    letters += op.output_letters;
    bool changed = false;
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const char letter = letters[i];
      if (letters.find(letter) != i)
        continue;
      auto axis = first_axis(op, letter);
      if (op.output_letters.find(letter) != absent) {
        changed |= give(op.output, op.output_letters, letter, axis);
        // An axis that the output cannot take does not reach the other inputs.
        axis = axis_in(op.output, op.output_letters, letter);
      }
      for (std::size_t input = 0; input < op.inputs.size(); ++input)
        changed |= give(op.inputs[input], op.letters[input], letter, axis);
    }
    return changed;
  }

  // Passes once through all operators, or those that are elementwise.
  bool pass(bool elementwise) {
    bool changed = false;
    for (const auto& op : operators_)
      if (!op.reshard && (!elementwise || op.is_elementwise()))
        changed |= pass_through(op);
    return changed;
  }

  const std::vector<einsum_operator>& operators_;
  const tensor_layouts& annotated_;
  tensor_layouts layouts_;
};

// The axis of each index while an operator computes: those of the output, and for an
// index that the output lacks the first axis of an input.
std::map<char, axis_name> computed_layout(const einsum_operator& op,
                                          const tensor_layouts& layouts) {
  std::map<char, axis_name> result;
  const auto& output = layouts.at(op.output);
  for (std::size_t dim = 0; dim < op.output_letters.size(); ++dim)
    result.try_emplace(op.output_letters[dim],
                       output[op.output_letters.find(op.output_letters[dim])]);
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    for (std::size_t dim = 0; dim < op.letters[i].size(); ++dim) {
      const char letter = op.letters[i][dim];
      auto& axis = result[letter];
      if (!axis && op.output_letters.find(letter) == absent)
        axis = layouts.at(op.inputs[i])[dim];
    }
  return result;
}

} // namespace

tensor_layouts propagated(const std::vector<einsum_operator>& operators,
                          const tensor_layouts& annotated) {
  return propagation{operators, annotated}.run();
}

std::vector<needed_collective>
needed_collectives(const std::vector<einsum_operator>& operators,
                   const tensor_layouts& layouts) {
  std::vector<needed_collective> result;
  for (std::size_t index = 0; index < operators.size(); ++index) {
    const auto& op = operators[index];
    const auto computed = computed_layout(op, layouts);
    const auto add = [&](const char* name, const std::string& axis,
                         const std::string& tensor) {
      result.push_back({name, static_cast<int>(index), axis, tensor});
    };
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const auto& held = layouts.at(op.inputs[i]);
      const auto moves_to = [&](const axis_name& axis) {
        return std::ranges::any_of(
          op.letters[i], [&](char letter) { return computed.at(letter) == axis; });
      };
      for (std::size_t dim = 0; dim < op.letters[i].size(); ++dim)
        if (held[dim] && computed.at(op.letters[i][dim]) != held[dim])
          add(moves_to(held[dim]) ? "all-to-all" : "all-gather", *held[dim],
              op.inputs[i]);
    }
    std::vector<std::string> summed;
    for (const auto& [letter, axis] : computed)
      if (axis && op.output_letters.find(letter) == absent
          && std::ranges::find(summed, *axis) == summed.end())
        summed.push_back(*axis);
    const auto& output = layouts.at(op.output);
    for (const auto& axis : summed)
      add(std::ranges::find(output, axis_name{axis}) == output.end() ? "all-reduce"
                                                                     : "reduce-scatter",
          axis, op.output);
  }
  return result;
}

} // namespace troupe
