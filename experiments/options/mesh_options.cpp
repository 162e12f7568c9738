#include "experiments/options/mesh_options.hpp"

#include "experiments/options/parsing.hpp"

#include <map>
#include <set>

namespace troupe {

tl::expected<mesh_options, std::string> parse_mesh(const std::string& text,
                                                   int stages) {
  mesh_options result{.stages = stages};
  std::set<std::string> given;
  for (const auto& part : split(text, ',')) {
    const auto equals = part.find('=');
    const auto axis = part.substr(0, equals);
    const auto size = equals == std::string::npos
                        ? std::nullopt
                        : whole_number<int>(part.substr(equals + 1));
    const std::map<std::string, int*> axes{{"data", &result.data},
                                           {"pipe", &result.stages},
                                           {"tensor", &result.tensor},
                                           {"expert", &result.expert}};
    if (!axes.contains(axis) || !given.insert(axis).second || !size || *size < 1
        || *size > 65'536)
      return problem{"--mesh '" + part
                     + "': write data=2,pipe=4,tensor=2,expert=2, each axis once and "
                       "from 1 to 65,536"};
    *axes.at(axis) = *size;
  }
  return result;
}

tl::expected<std::vector<int>, std::string> parse_split(const std::string& text) {
  std::vector<int> result;
  for (const auto& part : split(text, ',')) {
    const auto value = whole_number<int>(part);
    if (!value || *value < 1)
      return problem{"--split " + text + ": write whole numbers, as 2,2,1,1"};
    result.push_back(*value);
  }
  return result;
}

} // namespace troupe
