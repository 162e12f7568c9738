// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/library_product.hpp"

#include <tl/expected.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The table of cuBLASLt's algorithms that measurements on GPUs found faster than the
// first that the library proposes.

namespace troupe::cuda {

/// How a product reads the values of its factors.
enum class operand_kind : std::uint8_t { fp32, tf32, bf16 };

/// Name of a kind, as in tables: "tf32".
std::string name_of(operand_kind kind);

/// The properties of a product by which an algorithm is chosen.
struct product_key {
  std::string gpu;             ///< Model of the GPU: "NVIDIA H200".
  std::int64_t cublaslt = 0;   ///< Version of cuBLASLt: 130100.
  std::int64_t m = 0;          ///< Rows of the result.
  std::int64_t k = 0;          ///< Columns of the left factor, as the product reads it.
  std::int64_t n = 0;          ///< Columns of the result.
  bool a_transposed = false;   ///< Whether the left factor is read transposed.
  bool b_transposed = false;   ///< Whether the right factor is read transposed.
  operand_kind operands = {};  ///< Of both factors.
  bool result_is_bf16 = false; ///< Else fp32.
  epilogue_kind epilogue = {}; ///< An epilogue of library_product.
  bool adds = false;           ///< Whether beta is not 0.

  auto operator<=>(const product_key&) const = default;
};

/// An algorithm, and the times that were measured when the algorithm was chosen.
struct product_choice {
  int algorithm = 0;             ///< Index among the algorithms that cuBLASLt proposes.
  double microseconds = 0;       ///< Time of the algorithm.
  double first_microseconds = 0; ///< Time of algorithm 0.

  bool operator==(const product_choice&) const = default;
};

/// A table of choices.
struct product_choices {
  std::map<product_key, product_choice> rows;

  bool operator==(const product_choices&) const = default;
};

/// Largest number of algorithms that cuBLASLt is asked for; the indices of a table's
/// algorithms are smaller.
inline constexpr int most_algorithms = 8;

/// The key of a product. Absent if the table is not for the product: a matrix has gaps
/// between its rows, or does not begin at a multiple of 16 bytes.
/// \param gpu model of the GPU; commas become blanks
/// \param cublaslt version of cuBLASLt
std::optional<product_key> key_of(const library_product& product, std::string gpu,
                                  std::int64_t cublaslt);

/// Chooses an algorithm from measured times, by their index: the fastest if its time is
/// below 0.98 of the first's, else the first.
/// \pre !microseconds.empty()
product_choice choice_of(const std::vector<double>& microseconds);

/// Reads a table from CSV: a line with the names of the columns, then a line for each
/// choice. Empty lines are left out. The error is one sentence with the number of the
/// first wrong line.
tl::expected<product_choices, std::string> parse_choices(std::string_view csv);

/// Writes a table as parse_choices() reads tables, with times to a tenth of a
/// microsecond, and at least 0.1.
std::string to_csv(const product_choices& choices);

/// The table in the file that TROUPE_CHOICES names. Without TROUPE_CHOICES: the table
/// of product_choices.csv, which the program contains. The first call reads the table;
/// the reference stays valid until the program ends. Thread: any.
/// \throws std::runtime_error if the named file is no table
/// \throws std::logic_error if the table in the program is invalid
const product_choices& known_choices();

/// The text of product_choices.csv, for known_choices().
extern const std::string_view built_in_choices_text;

} // namespace troupe::cuda
