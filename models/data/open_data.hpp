// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Data sets by their names on the command line.

#include "models/data/data_set.hpp"
#include "models/model_options.hpp"

#include <tl/expected.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace troupe {

/// The data that `text` names, for a model of this kind and size: `synthetic`,
/// `text:PATH`, `tokens:PATH` or `mnist:FOLDER`. A path of text or tokens is a file, a
/// folder or a pattern (data_files.hpp). Options may follow: `,order=sequential` after
/// text or tokens, `,width=32` or `,width=16` (bits each) after tokens, `,split=t10k`
/// after a folder of MNIST.
///
/// `synthetic` needs no file. For models of text the data is a Markov source. For
/// models of images (lenet, lenet5, mlp) the data is ten kinds of shapes of 28 by 28
/// pixels, as MNIST's images are. The error is one sentence: the wrong part, or the
/// names that are allowed.
/// \param text name of the data
/// \param model that reads the data
/// \param seed of the order of samples, and of synthetic data
/// \param within folder that must hold every file, after all links; empty: any folder
tl::expected<std::shared_ptr<const data_set>, std::string>
open_data(const std::string& text, const model_options& model, std::uint64_t seed,
          const std::filesystem::path& within = {});

/// The data that `text` names, to evaluate on and not to train on. Of text and tokens
/// all samples are used, of other data the held-out samples. The option `order` is an
/// error, and so is data without a sample to evaluate on. Everything else is as for
/// open_data().
tl::expected<std::shared_ptr<const data_set>, std::string>
open_evaluation_data(const std::string& text, const model_options& model,
                     std::uint64_t seed, const std::filesystem::path& within = {});

/// Returns a data set that trains on the data `training`, and evaluates on the data of
/// open_evaluation_data(evaluation, ..). A text in random order trains on all tokens:
/// nothing is held out. Everything else is as for open_data().
tl::expected<std::shared_ptr<const data_set>, std::string>
open_data_sets(const std::string& training, const std::string& evaluation,
               const model_options& model, std::uint64_t seed,
               const std::filesystem::path& within = {});

} // namespace troupe
