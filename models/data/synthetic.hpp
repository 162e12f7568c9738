// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"

namespace troupe {

/// Text from a Markov source. After each word one of four words follows, with
/// probabilities 1/2, 1/4, 1/8, 1/8. The seed draws the four words, and may draw the
/// word itself. A vocabulary of fewer than four words has fewer followers. The entropy
/// rate, the loss of a perfect model, is therefore known: 7/4 bits with four words or
/// more.
/// \param length tokens of a sample
/// \param words size of the vocabulary
std::shared_ptr<const data_set> synthetic_text(std::int64_t length, std::int64_t words,
                                               std::uint64_t seed);

/// Images of 28 by 28 pixels of ten kinds of shapes, drawn with random positions, sizes
/// and noise; the kind is the label.
std::shared_ptr<const data_set> synthetic_images(std::uint64_t seed);

} // namespace troupe
