// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

class option_list;

/// Options of data and weights, as a user types them.
struct typed_data {
  std::string text = "synthetic"; ///< "text:FOLDER,order=sequential"
  std::optional<std::int64_t> batch;
  std::string init;
  std::uint64_t seed = 1;
};

/// Data, and the weights that a run begins with.
struct data_options {
  std::string text;                  ///< As open_data takes it.
  std::string name;                  ///< "text"
  std::string path;                  ///< Empty: no file is read.
  std::optional<std::int64_t> batch; ///< Samples; absent: as suits the model.
  std::string init;                  ///< Safetensors file; empty: made of the seed.
  std::uint64_t seed = 1;
};

void add_data(option_list& to, typed_data& place);

/// Only which data: --data and --seed.
void add_data_set(option_list& to, typed_data& place);

/// The data, whose name and path are checked where the files are opened.
data_options parse(const typed_data& typed);

} // namespace troupe
