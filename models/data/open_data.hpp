// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"
#include "models/model_options.hpp"

#include <tl/expected.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace troupe {

/// The data that `text` names, for a model of this kind and size: `synthetic`,
/// `text:PATH`, `tokens:PATH` or `mnist:FOLDER`. A path of text or tokens is a file, a
/// folder or a pattern (data_files.hpp). Behind it may stand `,order=sequential`,
/// behind tokens `,width=32` or `,width=16` (bits each), behind a folder of MNIST
/// `,split=t10k`. `synthetic` needs no file: for models of text it is a Markov source,
/// for those of images (lenet, lenet5, mlp) it draws ten kinds of shapes of 28 by 28
/// pixels, as MNIST's are. On error says what is wrong, or what can be named.
/// \param text name of the data \param model what reads it
/// \param seed of the order of samples, and of synthetic data
/// \param within folder that must hold every file, behind all links; empty: any does
tl::expected<std::shared_ptr<const data_set>, std::string>
open_data(const std::string& text, const model_options& model, std::uint64_t seed,
          const std::filesystem::path& within = {});

/// The data that `text` names, to evaluate on and not to train on: of text and tokens
/// all samples, of other data those held out. The rest as open_data().
tl::expected<std::shared_ptr<const data_set>, std::string>
open_evaluation_data(const std::string& text, const model_options& model,
                     std::uint64_t seed, const std::filesystem::path& within = {});

/// Data to train on, of which nothing is held out, with the data of
/// open_evaluation_data(evaluation, ..) to evaluate on. The rest as open_data().
tl::expected<std::shared_ptr<const data_set>, std::string>
open_data_sets(const std::string& training, const std::string& evaluation,
               const model_options& model, std::uint64_t seed,
               const std::filesystem::path& within = {});

} // namespace troupe
