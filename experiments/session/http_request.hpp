#pragma once

#include <tl/expected.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// Parser of the head of an HTTP request: its first line and its header fields.

/// The parts of a head that select one of several texts.
struct http_request {
  std::string method;
  std::string path;               ///< Without the query.
  std::vector<std::string> hosts; ///< Of each Host field, in lower case.
};

/// Bytes of the complete head at the start of `received`; npos while its end is
/// missing.
std::size_t head_bytes(std::string_view received);

/// The error is the status of the answer: 400. \param head complete
tl::expected<http_request, int> parse_request(std::string_view head);

/// The start of an answer, up to the empty line. The connection closes after its body.
/// \param fields more header fields, each with its line end
std::string answer_head(int status, std::string_view type, std::size_t body_bytes,
                        std::string_view fields);

} // namespace troupe
