// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data_identity.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// The file of weights or the checkpoint that names the data, if no typed option names
/// data.
struct data_origin {
  std::string path;
  /// The identity that the opened data must have; absent: any. Data without files are
  /// not compared.
  std::optional<data_identity> identity = {};
};

/// The data of a run, and its initial weights. As typed by the user, the options have
/// neither `name` nor `path`.
struct data_options {
  std::string text = "synthetic"; ///< The data set: "text:FOLDER,order=sequential".
  /// The data set of evaluations, in the form of `text`; empty: samples that `text`
  /// holds out.
  std::string evaluation;
  std::string name; ///< The kind of data: "text".
  std::string path; ///< Path of the data; empty: no file is read.
  /// Samples of a batch, of all data replicas. Absent: the sum of --microbatch-sizes.
  /// Without these sizes: 16 if the model reads tokens, else 64.
  std::optional<std::int64_t> batch;
  /// Safetensors file, index of files or folder of the initial weights; empty: the
  /// weights are drawn from the seed.
  std::string init;
  std::uint64_t seed = 1; ///< Seed of all random numbers without a seed of their own.
  std::optional<std::uint64_t> data_seed; ///< Seed of data; absent: `seed`.
  std::optional<std::uint64_t> init_seed; ///< Seed of initial weights; absent: `seed`.
  /// The file that names the data; absent if an option or the default names the data.
  std::optional<data_origin> origin = {};

  std::uint64_t seed_of_data() const { return data_seed.value_or(seed); }
  std::uint64_t seed_of_weights() const { return init_seed.value_or(seed); }
};

/// Splits the name of the data into kind and path, which are checked when the files are
/// opened.
data_options parse(data_options typed);

} // namespace troupe
