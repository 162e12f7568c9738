// SPDX-License-Identifier: BSD-3-Clause
#include "planner/case_file.hpp"

#include "models/input_file.hpp"
#include "models/utf8.hpp"
#include "planner/kinds/readers.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <type_traits>

namespace troupe::planner {

namespace {

using nlohmann::ordered_json;
using mistake = tl::unexpected<std::string>;

/// True if no planner reads the member, and a case may have it: a remark, or a fact of
/// `graph` or `stated` that other kinds read. None of those two is optional.
bool may_be_unread(std::string_view place) {
  constexpr std::array<std::string_view, 5> remarks{"expected", "baselines",
                                                    "graph_file", "source", "remark"};
  const bool is_of_part = place.starts_with("graph.") || place.starts_with("stated.");
  return std::ranges::find(remarks, place) != remarks.end()
         || (is_of_part && place.find('[') == place.npos);
}

struct reader {
  const char* kind;
  std::function<any_problem(const case_value&)> read;
};

template <class Problem>
reader reader_of(Problem (*read)(const case_value&)) {
  return {Problem::kind, read};
}

std::vector<reader> readers() {
  return {reader_of(read_pipedream),   reader_of(read_tarnawski),
          reader_of(read_piper),       reader_of(read_alpa),
          reader_of(read_dapple),      reader_of(read_dapple_latency),
          reader_of(read_placement),   reader_of(read_intra),
          reader_of(read_propagation), reader_of(read_options)};
}

named_problem read_content(const case_value& from) {
  named_problem result;
  result.name = from.has("name") ? from.member("name").text() : "case";
  std::ranges::replace_if(
    result.name, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  const auto kind = from.member("kind");
  std::string known;
  for (const auto& r : readers()) {
    if (r.kind == kind.text()) {
      result.content = r.read(from);
      return result;
    }
    known += (known.empty() ? "" : ", ") + std::string{r.kind};
  }
  kind.fail("is '" + kind.text() + "', but a case is one of " + known);
}

/// \throws case_error if an object has a member twice
ordered_json parse_document(const std::string& text) {
  try {
    return json_of_single_members(text);
  } catch (const std::invalid_argument& error) {
    throw case_error{error.what()};
  }
}

void add_remark(ordered_json& to, const answer& found) {
  if (!found.remark.empty())
    to["remark"] = found.remark;
}

} // namespace

std::vector<edge> read_edges(const case_value& edges, int operators) {
  std::vector<edge> result;
  for (const auto& element : edges.elements()) {
    const auto ends = element.elements(2);
    const edge e{ends[0].integer(0, operators - 1), ends[1].integer(0, operators - 1)};
    if (e.from >= e.to)
      element.fail("leads from operator " + std::to_string(e.from) + " to "
                   + std::to_string(e.to)
                   + ", but operators need a topological order: edges lead to higher "
                     "numbers");
    result.push_back(e);
  }
  return result;
}

tl::expected<named_problem, std::string> parse_case(const std::string& text) {
  try {
    const auto document = parse_document(text);
    read_members read;
    auto result = read_content({document, "", &read});
    for (auto& place : unread_places(document, read))
      if (!may_be_unread(place))
        result.unknown.push_back(std::move(place));
    return result;
  } catch (const ordered_json::parse_error& error) {
    if (text.find_first_not_of(" \t\r\n") == text.npos)
      return mistake{"the case is empty: a case is one JSON object with 'kind'"};
    const auto read = std::string_view{text}.substr(0, error.byte);
    const auto line = std::ranges::count(read, '\n') + 1;
    const auto column = read.size() - (read.find_last_of('\n') + 1);
    return mistake{"line " + std::to_string(line) + ", column " + std::to_string(column)
                   + " is no JSON: a case is one JSON object with 'kind'"};
  } catch (const ordered_json::out_of_range&) {
    return mistake{"a number is too large: numbers are at most 1e30"};
  } catch (const case_error& error) {
    return mistake{error.what()};
  }
}

tl::expected<named_problem, std::string> read_case(const std::filesystem::path& path) {
  constexpr std::int64_t largest = 100'000'000;
  const auto file = input_file::open(path, "the case");
  if (!file)
    return mistake{file.error()};
  if (file->size() > largest)
    return mistake{path.string() + " is larger than 100 MB, the most of a case"};
  try {
    auto result = parse_case(file->content());
    if (!result)
      return mistake{path.string() + ": " + result.error()};
    return result;
  } catch (const std::runtime_error& error) {
    return mistake{error.what()};
  }
}

tl::expected<double, std::string> judge(const any_problem& p, const any_plan& best) {
  return std::visit(
    [](const auto& content,
       const auto& candidate) -> tl::expected<double, std::string> {
      if constexpr (requires { cost(content, candidate); })
        return cost(content, candidate);
      else
        return mistake{"the plan is of another kind than the problem"};
    },
    p, best);
}

ordered_json to_json(const answer& found) {
  ordered_json result;
  if (!found.cost || !found.best) {
    result["cost"] = nullptr;
    add_remark(result, found);
    return result;
  }
  result["cost"] = *found.cost;
  if (found.out_of_time)
    result["out_of_time"] = true;
  add_remark(result, found);
  std::visit([&](const auto& best) { write(result, best); }, *found.best);
  return result;
}

} // namespace troupe::planner
