// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data_identity.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

class option_list;

/// The file of weights or the checkpoint that names the data where no option does.
struct data_origin {
  std::string place;
  /// The identity that the data must have; absent: any.
  std::optional<data_identity> identity = {};
};

/// Options of data and weights, as a user types them.
struct typed_data {
  std::string text = "synthetic"; ///< "text:FOLDER,order=sequential"
  std::string evaluation;         ///< Likewise; empty: samples that `text` holds out.
  std::optional<std::int64_t> batch;
  std::string init;
  std::uint64_t seed = 1;
  std::optional<data_origin> origin = {}; ///< Absent: the text is the user's.
};

/// Data, and the weights that a run begins with.
struct data_options {
  std::string text;       ///< As open_data takes it.
  std::string evaluation; ///< As open_data_sets takes it; empty: no such data.
  std::string name;       ///< "text"
  std::string path;       ///< Empty: no file is read.
  std::optional<std::int64_t> batch; ///< Samples; absent: as suits the model.
  std::string init;                  ///< Safetensors file; empty: made of the seed.
  std::uint64_t seed = 1;
  std::optional<data_origin> origin = {}; ///< As in typed_data.
};

void add_data(option_list& to, typed_data& place);

/// The data of evaluations: --evaluate-data.
void add_evaluation_data(option_list& to, typed_data& place);

/// Only which data: --data and --seed.
void add_data_set(option_list& to, typed_data& place);

/// The data, whose name and path are checked where the files are opened.
data_options parse(const typed_data& typed);

} // namespace troupe
