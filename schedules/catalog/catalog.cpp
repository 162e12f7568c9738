#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace troupe {

namespace {

constexpr int any = std::numeric_limits<int>::max();

template <schedule (*Make)()>
schedule fixed(std::span<const int>) {
  return Make();
}

const std::vector<catalog_entry>& entries() {
  static const std::vector<catalog_entry> all{
    {"naive", "one microbatch in flight", {}, fixed<naive>},
    {"gpipe", "all forwards, then all backwards; flush", {}, fixed<gpipe>},
    {"1f1b", "one forward, one backward; flush", {}, fixed<one_f_one_b>},
    {"chimera",
     "two 1F1B pipelines head to tail; flush",
     {{"eager", 1, 0, 1,
       "directions add their gradients while backwards still run, not after all"}},
     [](std::span<const int> v) { return chimera(v[0] != 0); }},
    {"pipedream",
     "1F1B without flush, a weight version stashed for each microbatch in flight",
     {{"update_every", 1, 1, any, "microbatches that an update covers"},
      {"vertical_sync", 0, 0, 1, "every stage reads the version that stage 0 read"}},
     [](std::span<const int> v) { return pipedream(v[0], v[1] != 0); }},
    {"2bw", "1F1B without flush on two weight versions", {}, fixed<two_bw>},
    {"ampnet",
     "whatever has arrived, backwards first, on the newest weights",
     {{"max_active_keys", 4, 1, any, "microbatches in flight at stage 0"},
      {"min_update_frequency", 8, 1, any, "gradients that a stage sums for an update"}},
     [](std::span<const int> v) { return ampnet(v[0], v[1]); }},
  };
  return all;
}

bool parse(std::string_view text, int& value) {
  if (text == "on" || text == "off" || text == "true" || text == "false") {
    value = text == "on" || text == "true";
    return true;
  }
  const auto [end, failure] = std::from_chars(text.begin(), text.end(), value);
  return failure == std::errc{} && end == text.end();
}

std::string allowed_values(const schedule_parameter& p) {
  auto result = std::string{p.name} + " is ";
  if (p.least == 0 && p.most == 1)
    return result + "on or off";
  return result + "a whole number of at least " + std::to_string(p.least);
}

std::string names_of(const std::vector<schedule_parameter>& parameters) {
  if (parameters.empty())
    return "it has none";
  std::string result = "it has ";
  for (const auto& p : parameters)
    result += (&p == parameters.data() ? "" : ", ") + std::string{p.name};
  return result;
}

} // namespace

std::span<const catalog_entry> catalog() {
  return entries();
}

std::string catalog_names() {
  std::string result;
  for (const auto& entry : entries())
    result += (result.empty() ? "" : ", ") + std::string{entry.name};
  return result;
}

tl::expected<schedule, std::string>
find_schedule(std::string_view name, const std::map<std::string, std::string>& values) {
  const auto entry = std::ranges::find(entries(), name, &catalog_entry::name);
  if (entry == entries().end())
    return tl::unexpected{"there is no schedule '" + std::string{name} + "'; there are "
                          + catalog_names()};
  const auto& known = entry->parameters;
  std::vector<int> chosen;
  for (const auto& p : known)
    chosen.push_back(p.initial);
  for (const auto& [key, text] : values) {
    const auto p = std::ranges::find(known, key, &schedule_parameter::name);
    if (p == known.end())
      return tl::unexpected{std::string{name} + " has no parameter '" + key + "'; "
                            + names_of(known)};
    auto& value = chosen[static_cast<std::size_t>(p - known.begin())];
    if (!parse(text, value) || value < p->least || value > p->most)
      return tl::unexpected{std::string{name} + ":" + key + "=" + text + ": "
                            + allowed_values(*p)};
  }
  return entry->make(chosen);
}

} // namespace troupe
