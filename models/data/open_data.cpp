#include "models/data/open_data.hpp"

#include "models/data/mnist.hpp"
#include "models/data/synthetic.hpp"
#include "models/data/text.hpp"
#include "models/data/tokens.hpp"

namespace troupe {

namespace {

constexpr const char* known =
  "synthetic, text:PATH, tokens:FILE, either with ,order=sequential behind, and "
  "mnist:FOLDER";

/// PATH and the order behind it, if one is given.
tl::expected<text_order, std::string> split_order(std::string& path) {
  const auto key = path.rfind("order=");
  if (key == std::string::npos || key == 0
      || (path[key - 1] != ',' && path[key - 1] != ':'))
    return text_order::random;
  const auto order = path.substr(key + 6);
  path.resize(key - 1);
  if (order == "sequential")
    return text_order::sequential;
  if (order == "random")
    return text_order::random;
  return tl::unexpected{"order=" + order + ": a text's order is random or sequential"};
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
open_data(const std::string& text, const model_options& model, std::uint64_t seed) {
  const bool wants_text = model.model == "gpt" || model.model == "moe";
  const auto kind = text.substr(0, text.find(':'));
  auto path = text.size() > kind.size() ? text.substr(kind.size() + 1) : "";
  if (kind == "synthetic" && path.empty())
    return wants_text ? synthetic_text(model.length, model.words, seed)
                      : synthetic_images(seed);
  const bool is_text = kind == "text" || kind == "tokens";
  if ((!is_text && kind != "mnist") || path.empty())
    return tl::unexpected{"there is no data '" + text + "'; there are " + known};
  if (wants_text != is_text)
    return tl::unexpected{"model " + model.model + " trains on "
                          + (wants_text ? "text or tokens" : "images") + ", not on "
                          + kind};
  if (kind == "mnist")
    return mnist_data(path, seed);
  const auto order = split_order(path);
  if (!order)
    return tl::unexpected{order.error()};
  const auto make = kind == "text" ? text_data : token_data;
  return make(path, *order, model.length, model.words, seed);
}

} // namespace troupe
