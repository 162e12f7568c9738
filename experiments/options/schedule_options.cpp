#include "experiments/options/schedule_options.hpp"

#include "experiments/options/option_list.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// The texts of single schedules in "gpipe,ampnet:max_active_keys=8,lr=0.01,2bw": a
/// comma begins a new one unless a parameter (key=value) follows it.
std::vector<std::string> single(const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const auto& name : names)
    for (const auto& part : split(name, ',')) {
      const bool parameter =
        part.find('=') != std::string::npos && part.find(':') == std::string::npos;
      if (parameter && !result.empty())
        result.back() += "," + part;
      else
        result.push_back(part);
    }
  if (result.empty())
    result.emplace_back(); // so that it is refused by name like any other
  return result;
}

using value_map = std::map<std::string, std::string>;

/// The values behind a schedule's name. On error says what can be written.
tl::expected<value_map, std::string> values_of(const std::string& text) {
  value_map result;
  const auto colon = text.find(':');
  if (colon == std::string::npos)
    return result;
  const problem shape{"'" + text + "': write a schedule as NAME:parameter=value,..."};
  const auto parts = split(text.substr(colon + 1), ',');
  for (const auto& part : parts) {
    const auto equals = part.find('=');
    if (equals == std::string::npos || equals == 0)
      return shape;
    auto key = part.substr(0, equals);
    std::ranges::replace(key, '-', '_');
    if (!result.emplace(key, part.substr(equals + 1)).second)
      return problem{"'" + text + "': " + key
                     + " stands there twice: give it one value"};
  }
  if (parts.empty())
    return shape;
  return result;
}

} // namespace

void add_schedules(option_list& to, typed_schedules& place, bool trains,
                   bool measures) {
  to.begin_group("Mesh and schedule");
  to.add_option("--microbatches", place.microbatches, "Microbatches of a batch.");
  if (measures)
    return;
  to.add_option("--schedules,--schedule", place.names,
                "Schedules: " + catalog_names()
                  + ". Name all: every schedule that fits the sizes. Parameters stand "
                    "behind a colon, as ampnet:max_active_keys=8"
                  + std::string{trains ? ",lr=0.01." : "."});
  to.add_option("--steps", place.steps, "Batches of the run.");
  if (trains)
    to.add_option("--epochs", place.epochs,
                  "Passes over the data, in place of --steps.");
}

tl::expected<chosen_schedule, std::string>
parse_schedule(const std::string& text, bool of_all, const optimizer_options* learns) {
  auto values = values_of(text);
  if (!values)
    return problem{values.error()};
  chosen_schedule result{.text = text,
                         .of_all = of_all,
                         .name = text.substr(0, text.find(':')),
                         .values = *values,
                         .sch = {},
                         .optimizer = {}};
  if (learns != nullptr) {
    const auto own = with_own(*learns, *values);
    if (!own)
      return problem{result.name + ": " + own.error()};
    result.optimizer = *own;
  }
  auto sch = find_schedule(result.name, *values);
  if (!sch)
    return problem{sch.error()};
  result.sch = std::move(*sch);
  return result;
}

tl::expected<schedule_options, std::string> parse(const typed_schedules& typed,
                                                  const mesh_options& mesh,
                                                  const optimizer_options* learns) {
  if (typed.microbatches % mesh.data != 0)
    return problem{std::to_string(typed.microbatches)
                   + " microbatches cannot be shared by " + std::to_string(mesh.data)
                   + " data replicas: --microbatches must be a multiple of them"};
  schedule_options result{{}, typed.microbatches, typed.steps, typed.epochs};
  const auto texts = single(typed.names);
  const auto add = [&](const std::string& text, bool of_all) {
    auto one = parse_schedule(text, of_all, learns);
    if (!one)
      return one.error();
    result.chosen.push_back(std::move(*one));
    return std::string{};
  };
  for (const auto& text : texts) {
    if (std::ranges::count(texts, text) > 1)
      return problem{text + " is named twice: name each run once"};
    if (text != "all") {
      if (auto wrong = add(text, false); !wrong.empty())
        return problem{wrong};
      continue;
    }
    for (const auto& entry : catalog())
      if (std::ranges::count(texts, entry.name) == 0)
        if (auto wrong = add(std::string{entry.name}, true); !wrong.empty())
          return problem{wrong};
  }
  return result;
}

} // namespace troupe
