// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/opened_data.hpp"

#include "experiments/options/parsing.hpp"
#include "models/data/open_data.hpp"

namespace troupe {

namespace {

/// The end of a sentence about data that cannot be opened: where its name comes from.
std::string origin_of(const data_options& o) {
  if (!o.origin)
    return {};
  std::string notes;
  constexpr const char* replacement = "\xef\xbf\xbd"; // U+FFFD, by models/utf8
  if (o.text.find(replacement) != std::string::npos)
    notes = ", with U+FFFD in place of bytes that are not UTF-8";
  else if (!o.path.empty() && std::filesystem::path{o.path}.is_relative())
    notes = ", from the folder in which the training ran";
  return "; " + o.origin->place + " says --data " + o.text + notes
         + ": name the data with --data";
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
opened_data(const options& o, const std::filesystem::path& within) {
  auto data = open_data(o.data.text, o.model, o.data.seed, within);
  if (!data)
    return problem{data.error() + origin_of(o.data)};
  const auto identity = (*data)->identity();
  if (const auto& origin = o.data.origin; origin && origin->identity && identity
                                          && identity->bytes > 0
                                          && *origin->identity != *identity)
    return problem{
      "--data " + o.data.text + " is not what the training read: that was '"
      + to_string(*origin->identity) + "', and it is '" + to_string(*identity)
      + "': give it the same again, or say --data yourself"};
  return data;
}

} // namespace troupe
