// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace troupe {

namespace {

constexpr int any = std::numeric_limits<int>::max();
constexpr int most_stages_a_rank = 1 << 10;

template <schedule (*Make)()>
schedule fixed(std::span<const int>) {
  return Make();
}

const std::vector<catalog_entry>& entries() {
  static const std::vector<catalog_entry> list{
    {"naive", "one microbatch in flight at a time", {}, fixed<naive>},
    {"gpipe", "all forwards, then all backwards; flush", {}, fixed<gpipe>},
    {"1f1b", "one forward, one backward; flush", {}, fixed<one_f_one_b>},
    {"interleaved",
     "1F1B around the ranks v times; flush",
     {{"v", 2, 1, most_stages_a_rank, "stages of a rank"}},
     [](std::span<const int> v) { return interleaved(v[0]); }},
    {"looped_bfs",
     "all microbatches pass through a rank's first stage, then through the rank's next "
     "stage; flush",
     {{"v", 2, 1, most_stages_a_rank, "stages of a rank"}},
     [](std::span<const int> v) { return looped_bfs(v[0]); }},
    {"zb-h1", "1F1B with weight gradients in its idle slots; flush", {}, fixed<zb_h1>},
    {"zb-h2",
     "zb-h1 with twice as many forwards before the first backward; flush",
     {},
     fixed<zb_h2>},
    {"zb-v", "zero bubble, stages there and back in a V; flush", {}, fixed<zb_v>},
    {"zb-auto",
     "weight gradients placed by a search over costs and memory; flush",
     {{"f", 1, 1, 1'000'000, "time of a forward; default: that of --cost, else 1"},
      {"i", 1, 1, 1'000'000,
       "time of an input gradient; default: that of --cost, else 1"},
      {"w", 1, 1, 1'000'000,
       "time of a weight gradient; default: that of --cost, else 1"},
      {"most_held", 0, 0, any,
       "largest number of microbatches that a rank holds; 0: the number of stages"},
      {"measured", 0, 0, 1,
       "1: f, i and w are measured on this machine before the run"}},
     [](std::span<const int> v) {
       return zb_auto({{v[0], v[1], v[2]}}, v[3]);
     }},
    {"v-half", "a V with half of the activations of 1F1B; flush", {}, fixed<v_half>},
    {"v-min", "a V with a third of the activations of 1F1B; flush", {}, fixed<v_min>},
    {"hanayo",
     "stages there and back along the ranks in waves; flush",
     {{"waves", 1, 1, most_stages_a_rank / 2,
       "number of waves; a rank has two stages for each"}},
     [](std::span<const int> v) { return hanayo(v[0]); }},
    {"chimera",
     "pairs of 1F1B pipelines in opposite directions; flush",
     {{"eager", 1, 0, 1, "1: directions sum gradients while backwards still run"},
      {"pairs", 1, 1, 1 << 15, "pairs of pipelines, which start at different ranks"},
      {"forward_doubling", 0, 0, 1,
       "1: a slot has two forwards or a backward; needs pairs=1"}},
     [](std::span<const int> v) {
       return chimera(
         {.eager = v[0] != 0, .pairs = v[1], .forward_doubling = v[2] != 0});
     }},
    {"dualpipe",
     "two pipelines in opposite directions, forwards and backwards in pairs; flush",
     {},
     fixed<dualpipe>},
    {"dualpipev", "dualpipe on half of the ranks, in a V; flush", {}, fixed<dualpipev>},
    {"pipedream",
     "1F1B without flush, a weight version stashed for each microbatch in flight",
     {{"update_every", 1, 1, any, "microbatches that an update covers"},
      {"vertical_sync", 0, 0, 1, "1: every stage reads the version that stage 0 read"}},
     [](std::span<const int> v) { return pipedream(v[0], v[1] != 0); }},
    {"2bw", "1F1B without flush on two weight versions", {}, fixed<two_bw>},
    {"ampnet",
     "a rank runs any input that has arrived, backwards first, on the newest weights",
     {{"max_active_keys", 4, 1, any,
       "largest number of microbatches in flight at stage 0"},
      {"min_update_frequency", 8, 1, any,
       "number of gradients that a stage sums for an update"}},
     [](std::span<const int> v) { return ampnet(v[0], v[1]); }},
  };
  return list;
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
  if (p.least == 0 && p.most == 1)
    return "write on or off";
  return "write a whole number of at least " + std::to_string(p.least)
         + (p.most < any ? " and at most " + std::to_string(p.most) : "");
}

std::string names_of(const std::vector<schedule_parameter>& parameters) {
  if (parameters.empty())
    return "the schedule has no parameters";
  std::string result = "the parameters are ";
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
    return tl::unexpected{
      "there is no schedule '" + std::string{name} + "'; the schedules are "
      + catalog_names()
      + (name.find_first_of("./") == std::string_view::npos
           ? ""
           : "; say file:" + std::string{name} + " for a schedule in a file")};
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
