// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/product_choices.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace troupe::cuda {

namespace {

constexpr std::string_view header =
  "gpu,cublaslt,m,k,n,a_transposed,b_transposed,operands,result,epilogue,adds,"
  "algorithm,microseconds,first_microseconds";

/// An algorithm must be faster than the first by this factor, so that noise chooses
/// none.
constexpr double needed_ratio = 0.98;

constexpr std::array operand_kinds{operand_kind::fp32, operand_kind::tf32,
                                   operand_kind::bf16};
constexpr std::array epilogue_kinds{
  epilogue_kind::none, epilogue_kind::bias, epilogue_kind::bias_gelu,
  epilogue_kind::bias_residual, epilogue_kind::gelu_gradient};

using problem = tl::unexpected<std::string>;

/// Reads the cells of one line, from left to right.
class cell_reader {
public:
  explicit cell_reader(std::string_view line) : rest_(line) {
    // nop
  }

  std::string text(const std::string& column) {
    const auto cell = next();
    if (cell.empty())
      note(column + " is empty");
    return std::string{cell};
  }

  /// Reads a whole number. \param most largest allowed value; negative: none
  std::int64_t whole(const std::string& column, std::int64_t least,
                     std::int64_t most = -1) {
    const auto cell = next();
    std::int64_t value = 0;
    if (!is_read(cell, value) || value < least || (most >= 0 && value > most))
      note(column + " is '" + std::string{cell} + "': write a whole number from "
           + std::to_string(least)
           + (most >= 0 ? " to " + std::to_string(most) : " on"));
    return value;
  }

  double time(const std::string& column) {
    const auto cell = next();
    double value = 0;
    if (!is_read(cell, value) || !(value > 0) || value > 1e12)
      note(column + " is '" + std::string{cell}
           + "': write a number of microseconds above 0");
    return value;
  }

  /// Reads one of several names, and returns the index of the name.
  template <class Names>
  std::size_t name(const std::string& column, const Names& names) {
    const auto cell = next();
    const auto found = std::ranges::find(names, cell);
    if (found != std::ranges::end(names))
      return static_cast<std::size_t>(found - std::ranges::begin(names));
    std::string allowed;
    for (const std::string_view known : names)
      allowed += (allowed.empty() ? "" : ", ") + std::string{known};
    note(column + " is '" + std::string{cell} + "': there are " + allowed);
    return 0;
  }

  bool flag(const std::string& column) { return whole(column, 0, 1) == 1; }

  /// The first mistake of the line; empty if there is none. Call after the last cell.
  std::string error() {
    if (!at_end_)
      note("there are more cells than the header has");
    return error_;
  }

private:
  std::string_view next() {
    if (at_end_)
      note("there are fewer cells than the header has");
    const auto comma = rest_.find(',');
    const auto cell = rest_.substr(0, comma);
    at_end_ = comma == std::string_view::npos;
    rest_ = at_end_ ? std::string_view{} : rest_.substr(comma + 1);
    return cell;
  }

  template <class Number>
  static bool is_read(std::string_view cell, Number& to) {
    const auto* const end = cell.data() + cell.size();
    const auto [stop, failed] = std::from_chars(cell.data(), end, to);
    return failed == std::errc{} && stop == end;
  }

  void note(std::string mistake) {
    if (error_.empty())
      error_ = std::move(mistake);
  }

  std::string_view rest_;
  bool at_end_ = false;
  std::string error_;
};

template <class Kinds>
std::vector<std::string> names_of(const Kinds& kinds) {
  std::vector<std::string> result;
  for (const auto kind : kinds)
    result.emplace_back(name_of(kind));
  return result;
}

std::pair<product_key, product_choice> row_of(cell_reader& cells) {
  product_key key;
  key.gpu = cells.text("gpu");
  key.cublaslt = cells.whole("cublaslt", 1);
  key.m = cells.whole("m", 1);
  key.k = cells.whole("k", 1);
  key.n = cells.whole("n", 1);
  key.a_transposed = cells.flag("a_transposed");
  key.b_transposed = cells.flag("b_transposed");
  key.operands = operand_kinds[cells.name("operands", names_of(operand_kinds))];
  key.result_is_bf16 = cells.name("result", std::array{"fp32", "bf16"}) == 1;
  key.epilogue = epilogue_kinds[cells.name("epilogue", names_of(epilogue_kinds))];
  key.adds = cells.flag("adds");
  product_choice choice;
  choice.algorithm = static_cast<int>(cells.whole("algorithm", 0, most_algorithms - 1));
  choice.microseconds = cells.time("microseconds");
  choice.first_microseconds = cells.time("first_microseconds");
  return {std::move(key), choice};
}

/// Takes the first line off a text, without the line's end.
std::string_view next_line(std::string_view& text) {
  const auto end = text.find('\n');
  auto line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  return line;
}

/// Whether rows follow each other without gaps, from a multiple of 16 bytes on.
template <class Scalar>
bool is_dense(const stored_matrix<Scalar>& m) {
  return (m.data == nullptr || m.stride == m.columns)
         && reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0;
}

std::string text_of(double microseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", std::max(microseconds, 0.1));
  return text;
}

} // namespace

std::string name_of(operand_kind kind) {
  switch (kind) {
  case operand_kind::fp32:
    return "fp32";
  case operand_kind::tf32:
    return "tf32";
  case operand_kind::bf16:
    return "bf16";
  }
  return {};
}

std::optional<product_key> key_of(const library_product& product, std::string gpu,
                                  std::int64_t cublaslt) {
  const auto& a = product.a;
  const auto& b = product.b;
  if (!is_dense(a) || !is_dense(b) || !is_dense(product.c) || !is_dense(product.x)
      || !is_dense(product.y))
    return {};
  std::ranges::replace(gpu, ',', ' ');
  return product_key{
    .gpu = std::move(gpu),
    .cublaslt = cublaslt,
    .m = product.c.rows,
    .k = a.transposed ? a.rows : a.columns,
    .n = product.c.columns,
    .a_transposed = a.transposed,
    .b_transposed = b.transposed,
    .operands = a.is_bf16      ? operand_kind::bf16
                : product.tf32 ? operand_kind::tf32
                               : operand_kind::fp32,
    .result_is_bf16 = product.c.is_bf16,
    .epilogue = product.end,
    .adds = product.beta != 0,
  };
}

product_choice choice_of(const std::vector<double>& microseconds) {
  const auto fastest = std::ranges::min_element(microseconds);
  const double first = microseconds.front();
  if (*fastest < needed_ratio * first)
    return {static_cast<int>(fastest - microseconds.begin()), *fastest, first};
  return {0, first, first};
}

tl::expected<product_choices, std::string> parse_choices(std::string_view csv) {
  if (next_line(csv) != header)
    return problem{"line 1 is not the header of a table of products: write "
                   + std::string{header}};
  product_choices result;
  for (int line = 2; !csv.empty(); ++line) {
    const auto text = next_line(csv);
    if (text.empty())
      continue;
    cell_reader cells{text};
    auto row = row_of(cells);
    auto error = cells.error();
    if (error.empty() && !result.rows.insert(std::move(row)).second)
      error = "an earlier line has the same product: leave either line out";
    if (!error.empty())
      return problem{"line " + std::to_string(line) + ": " + error};
  }
  return result;
}

std::string to_csv(const product_choices& choices) {
  std::string result{header};
  result += '\n';
  for (const auto& [key, choice] : choices.rows) {
    result += key.gpu + ',';
    for (const auto number : {key.cublaslt, key.m, key.k, key.n})
      result += std::to_string(number) + ',';
    for (const bool flag : {key.a_transposed, key.b_transposed})
      result += flag ? "1," : "0,";
    result += name_of(key.operands);
    result += key.result_is_bf16 ? ",bf16," : ",fp32,";
    result += name_of(key.epilogue);
    result += key.adds ? ",1," : ",0,";
    result += std::to_string(choice.algorithm) + ',' + text_of(choice.microseconds)
              + ',' + text_of(choice.first_microseconds) + '\n';
  }
  return result;
}

namespace {

/// The table of a file. \throws std::runtime_error
product_choices read_choices(const std::string& path) {
  std::ifstream file{path};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  auto parsed =
    file.is_open() ? parse_choices(text) : problem{"the file cannot be opened"};
  if (!parsed)
    throw std::runtime_error{"TROUPE_CHOICES names no table of algorithms: " + path
                             + ": " + parsed.error()};
  return std::move(*parsed);
}

} // namespace

const product_choices& known_choices() {
  static const auto table = [] {
    if (const char* const path = std::getenv("TROUPE_CHOICES"))
      return read_choices(path);
    auto parsed = parse_choices(built_in_choices_text);
    if (!parsed)
      throw std::logic_error{"kernels/cuda/product_choices.csv: " + parsed.error()};
    return std::move(*parsed);
  }();
  return table;
}

} // namespace troupe::cuda
