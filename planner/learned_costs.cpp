// SPDX-License-Identifier: BSD-3-Clause
#include "planner/learned_costs.hpp"

#include "models/input_file.hpp"
#include "models/utf8.hpp"
#include "models/whole_file.hpp"
#include "planner/case_value.hpp"
#include "planner/least_squares.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string_view>

namespace troupe::planner {

namespace {

using nlohmann::ordered_json;
using mistake = tl::unexpected<std::string>;

constexpr double bytes_an_element = 4;
constexpr double least_seconds = 5e-5; // shorter times are mostly the timer's noise
constexpr std::int64_t largest_file = 100'000'000;

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

std::optional<double> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" ("), text.size()));
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{})
    return std::nullopt;
  return value;
}

// The number of "name=3" or of "name=(3, 3)", or the argument at a position.
std::optional<double> argument(std::string_view text, std::string_view name,
                               int position = -1) {
  if (const auto found = text.find(name); found != text.npos)
    return leading_number(text.substr(found + name.size()));
  auto begin = text.find('(');
  for (int skipped = 0; skipped < position && begin != text.npos; ++skipped)
    begin = text.find(',', begin + 1);
  if (position < 0 || begin == text.npos)
    return std::nullopt;
  return leading_number(text.substr(begin + 1));
}

cost_line fit_line(const std::vector<const measured_operator*>& measured,
                   double operator_seconds::*direction) {
  dense_matrix rows;
  std::vector<double> ones; // seconds, divided by themselves unless they are short
  for (const auto* op : measured) {
    const double seconds = op->seconds.*direction;
    const double unit = std::max(seconds, least_seconds);
    rows.push_back(
      {op->content.operations() / unit, op->content.bytes() / unit, 1 / unit});
    ones.push_back(seconds / unit);
  }
  const auto factors = positive_least_squares(rows, ones);
  return {factors[0], factors[1], factors[2]};
}

// The fields of a line of CSV; absent if a quotation does not end.
std::optional<std::vector<std::string>> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i] == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (line[i] == '"')
      is_quoted = !is_quoted;
    else if (line[i] == ',' && !is_quoted)
      fields.emplace_back();
    else if (line[i] != '\r')
      fields.back() += line[i];
  if (is_quoted)
    return std::nullopt;
  return fields;
}

const std::vector<std::string> header{"model",        "operator",        "input_bytes",
                                      "output_bytes", "parameter_bytes", "forward_ms",
                                      "backward_ms"};

constexpr const char* joined_header =
  "model,operator,input_bytes,output_bytes,parameter_bytes,forward_ms,backward_ms";

tl::expected<measured_operator, std::string>
measured_operator_of(const std::vector<std::string>& fields) {
  double numbers[5] = {};
  for (std::size_t i = 0; i < std::size(numbers); ++i) {
    const auto& text = fields[i + 2];
    const auto* const last = text.data() + text.size();
    const auto result = std::from_chars(text.data(), last, numbers[i]);
    if (result.ec != std::errc{} || result.ptr != last || !std::isfinite(numbers[i])
        || numbers[i] < 0)
      return mistake{header[i + 2] + " is '" + text
                     + "', but a number of 0 or more is needed"};
  }
  constexpr double seconds_a_millisecond = 1e-3;
  return measured_operator{
    fields[0],
    {fields[1], numbers[0], numbers[1], numbers[2]},
    {numbers[3] * seconds_a_millisecond, numbers[4] * seconds_a_millisecond}};
}

tl::expected<std::vector<measured_operator>, std::string>
parse_measured_operators(const std::string& text) {
  std::vector<measured_operator> result;
  std::istringstream lines{text};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto place = "line " + std::to_string(number) + ": ";
    if (line.empty() || line == "\r")
      continue;
    const auto fields = fields_of(line);
    if (!fields)
      return mistake{place + "a quotation does not end"};
    if (fields->size() != header.size())
      return mistake{place + std::to_string(fields->size()) + " fields, but "
                     + std::to_string(header.size()) + " are needed: " + joined_header};
    if (number == 1) {
      if (*fields != header)
        return mistake{place + "the header must be " + joined_header};
      continue;
    }
    auto measured = measured_operator_of(*fields);
    if (!measured)
      return mistake{place + measured.error()};
    result.push_back(std::move(*measured));
  }
  if (result.empty())
    return mistake{"the file has no measured operator"};
  return result;
}

// Parses the content of a file. Errors begin with the path.
template <class Parser>
auto parse_file(const std::filesystem::path& path, const std::string& description,
                Parser parse) -> decltype(parse(std::string{})) {
  const auto file = input_file::open(path, description);
  if (!file)
    return mistake{file.error()};
  if (file->size() > largest_file)
    return mistake{path.string() + " is larger than 100 MB"};
  try {
    auto result = parse(file->content());
    if (!result)
      return mistake{path.string() + ": " + result.error()};
    return result;
  } catch (const std::runtime_error& error) {
    return mistake{path.string() + ": " + error.what()};
  }
}

ordered_json to_json(const cost_line& line) {
  return {line.an_operation, line.a_byte, line.constant};
}

cost_line read_line(const case_value& from) {
  const auto factors = from.elements(3);
  return {factors[0].number(), factors[1].number(), factors[2].number()};
}

} // namespace

std::string described_operator::kind() const {
  const auto end = std::min(text.find('('), text.size());
  auto begin = end;
  while (begin > 0 && is_name_letter(text[begin - 1]))
    --begin;
  return text.substr(begin, end - begin);
}

double described_operator::operations() const {
  const double outputs = output_bytes / bytes_an_element;
  const double parameters = parameter_bytes / bytes_an_element;
  const auto name = kind();
  constexpr double operations_a_product = 2;
  std::optional<double> output_features;
  if (name.starts_with("Conv"))
    output_features = argument(text, "out_channels=", 1);
  else if (name == "Linear")
    output_features = argument(text, "out_features=", 1);
  if (output_features && *output_features > 0)
    return operations_a_product * outputs * parameters / *output_features;
  if (name.ends_with("Pool2d"))
    if (const auto width = argument(text, "kernel_size=", 0); width)
      return outputs * *width * *width;
  return outputs;
}

tl::expected<std::vector<measured_operator>, std::string>
read_measured_operators(const std::filesystem::path& path) {
  return parse_file(path, "the file of measured operators", parse_measured_operators);
}

double cost_line::seconds(const described_operator& op) const {
  return an_operation * op.operations() + a_byte * op.bytes() + constant;
}

learned_costs::line_pair
learned_costs::fit_kind(const std::vector<const measured_operator*>& measured) {
  return {fit_line(measured, &operator_seconds::forward),
          fit_line(measured, &operator_seconds::backward)};
}

learned_costs learned_costs::fit(const std::vector<measured_operator>& measured) {
  std::map<std::string, std::vector<const measured_operator*>> by_kind;
  std::vector<const measured_operator*> any;
  for (const auto& op : measured) {
    by_kind[op.content.kind()].push_back(&op);
    any.push_back(&op);
  }
  learned_costs result;
  for (const auto& [kind, operators] : by_kind)
    result.kinds_[kind] = fit_kind(operators);
  result.any_kind_ = fit_kind(any);
  return result;
}

operator_seconds learned_costs::predict(const described_operator& op) const {
  const auto found = kinds_.find(op.kind());
  const auto& lines = found == kinds_.end() ? any_kind_ : found->second;
  return {lines.forward.seconds(op), lines.backward.seconds(op)};
}

tl::expected<void, std::string>
learned_costs::save(const std::filesystem::path& path) const {
  const auto lines = [](const line_pair& pair) {
    return ordered_json{{"forward", to_json(pair.forward)},
                        {"backward", to_json(pair.backward)}};
  };
  ordered_json document{
    {"seconds", "operations, bytes, constant"},
    {"any_kind", lines(any_kind_)},
    {"kinds", ordered_json::object()},
  };
  for (const auto& [kind, pair] : kinds_)
    document["kinds"][kind] = lines(pair);
  if (auto error = write_whole_file(path, document.dump(2) + "\n"); !error.empty())
    return mistake{std::move(error)};
  return {};
}

tl::expected<learned_costs, std::string>
learned_costs::load(const std::filesystem::path& path) {
  using result_type = tl::expected<learned_costs, std::string>;
  return parse_file(
    path, "the file of learned costs", [](const std::string& text) -> result_type {
      try {
        const auto document = json_of_single_members(text);
        const auto read_pair = [](const case_value& from) {
          return line_pair{read_line(from.member("forward")),
                           read_line(from.member("backward"))};
        };
        const case_value whole{document, ""};
        learned_costs result;
        result.any_kind_ = read_pair(whole.member("any_kind"));
        for (const auto& [kind, pair] : whole.member("kinds").members())
          result.kinds_[kind] = read_pair(pair);
        return result;
      } catch (const ordered_json::parse_error& error) {
        return mistake{"byte " + std::to_string(error.byte) + " is no JSON"};
      } catch (const std::invalid_argument& error) {
        return mistake{error.what()};
      } catch (const case_error& error) {
        return mistake{error.what()};
      }
    });
}

} // namespace troupe::planner
