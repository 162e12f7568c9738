#include "experiments/options/schedule_options.hpp"

#include "experiments/options/parsing.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>

namespace troupe {

namespace {

tl::expected<schedule_text, std::string> parse_schedule(const std::string& text) {
  const auto colon = text.find(':');
  schedule_text result{text, text.substr(0, colon), {}};
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
    if (!result.values.emplace(key, part.substr(equals + 1)).second)
      return problem{"'" + text + "': " + key
                     + " stands there twice: give it one value"};
  }
  if (parts.empty())
    return shape;
  return result;
}

} // namespace

std::vector<std::string> split_schedules(const std::string& text) {
  std::vector<std::string> result;
  for (const auto& part : split(text, ',')) {
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

tl::expected<std::vector<schedule_text>, std::string>
named_schedules(const std::vector<std::string>& texts) {
  const auto all = split_schedules(joined(texts));
  std::vector<schedule_text> result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::ranges::count(all, all[i]) > 1)
      return problem{all[i] + " is named twice: name each run once"};
    if (all[i] == "all") {
      for (const auto& entry : catalog())
        if (std::ranges::count(all, entry.name) == 0)
          result.push_back(
            {std::string{entry.name}, std::string{entry.name}, {}, true});
      continue;
    }
    auto one = parse_schedule(all[i]);
    if (!one)
      return problem{one.error()};
    result.push_back(std::move(*one));
  }
  return result;
}

tl::expected<options, std::string>
with_own_options(options o, std::map<std::string, std::string>& values) {
  std::optional<double> momentum = o.momentum, epsilon = o.epsilon;
  const std::pair<const char*, std::optional<double>*> numbers[] = {
    {"lr", &o.rate},
    {"momentum", &momentum},
    {"eps", &epsilon},
    {"weight_decay", &o.weight_decay}};
  for (const auto& [key, place] : numbers)
    if (const auto found = values.extract(key)) {
      *place = number(found.mapped());
      if (!*place)
        return problem{std::string{key} + "=" + found.mapped() + ": " + key
                       + " is a number of at least 0"};
    }
  o.momentum = *momentum;
  o.epsilon = *epsilon;
  auto betas = split(o.betas, ',');
  betas.resize(2);
  for (const std::size_t i : {0, 1})
    if (const auto found = values.extract(i == 0 ? "beta1" : "beta2")) {
      betas[i] = found.mapped();
      o.betas = joined(betas);
    }
  if (const auto clip = values.extract("clip")) {
    o.clips_stages = clip.mapped() == "stage";
    if (!o.clips_stages)
      o.clip = clip.mapped();
  }
  return o;
}

} // namespace troupe
