#include "experiments/session/http_request.hpp"

#include <algorithm>

namespace troupe {

namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view head_end = "\r\n\r\n";

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_visible(char c) {
  return c > ' ' && c < '\x7f';
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_visible);
}

/// Removes the text up to `end` from the front of `rest`; all of it without an `end`.
std::string_view next_part(std::string_view& rest, std::string_view end) {
  const auto length = rest.find(end);
  const auto result = rest.substr(0, length);
  rest.remove_prefix(length == std::string_view::npos ? rest.size()
                                                      : length + end.size());
  return result;
}

std::string_view trimmed(std::string_view text) {
  constexpr auto blanks = " \t";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string in_lower_case(std::string_view text) {
  std::string result{text};
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

std::string_view reason(int status) {
  switch (status) {
  case 200:
    return "OK";
  case 403:
    return "Forbidden";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 414:
    return "URI Too Long";
  case 431:
    return "Request Header Fields Too Large";
  default:
    return "Bad Request";
  }
}

} // namespace

std::size_t head_bytes(std::string_view received) {
  const auto at = received.find(head_end);
  return at == std::string_view::npos ? at : at + head_end.size();
}

tl::expected<http_request, int> parse_request(std::string_view head) {
  const tl::unexpected bad_request{400};
  auto first = next_part(head, line_end);
  const auto method = next_part(first, " ");
  const auto target = next_part(first, " ");
  if (!is_word(method) || !is_word(target)
      || (first != "HTTP/1.1" && first != "HTTP/1.0"))
    return bad_request;
  http_request result{
    std::string{method}, std::string{target.substr(0, target.find('?'))}, {}};
  while (!head.empty()) {
    auto value = next_part(head, line_end);
    if (value.empty())
      continue; // the head's end
    const bool has_colon = value.find(':') != std::string_view::npos;
    const auto name = next_part(value, ":");
    if (!has_colon || !is_word(name))
      return bad_request;
    if (in_lower_case(name) == "host")
      result.hosts.push_back(in_lower_case(trimmed(value)));
  }
  return result;
}

std::string answer_head(int status, std::string_view type, std::size_t body_bytes,
                        std::string_view fields) {
  std::string result = "HTTP/1.1 " + std::to_string(status) + " ";
  result.append(reason(status)).append("\r\nContent-Type: ").append(type);
  result +=
    "\r\nContent-Length: " + std::to_string(body_bytes) + "\r\nConnection: close\r\n";
  return result.append(fields).append(line_end);
}

} // namespace troupe
