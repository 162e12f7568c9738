// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Answers HTTP requests for a few texts, in memory. cpp-httplib parses the requests and
// writes the answers.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

/// The bytes of an answer.
struct http_answer {
  /// The head, and the body of a refusal. Empty if there is no answer.
  std::string head;
  std::shared_ptr<const std::string> body; ///< Sent after the head; null: none.
};

/// Texts by path. A request must name this machine (127.0.0.1 or localhost) and the
/// port in the Host field; other requests are refused.
class http_texts {
public:
  /// \param port that the Host field must name
  explicit http_texts(int port);
  ~http_texts();
  http_texts(const http_texts&) = delete;
  http_texts& operator=(const http_texts&) = delete;

  /// Stores a text under a path. Any thread may call.
  /// \param type MIME type of the text: "text/html"
  void put(const std::string& path, std::string text, const std::string& type);

  /// Answers a request; the connection must close afterwards. Range fields are ignored.
  /// One thread at a time may call.
  /// \param received the head with its empty line, or the start of a head that is too
  /// long
  http_answer answer(std::string_view received);

  /// Returns true if a GET or HEAD with this machine's name was answered within the
  /// last `time`, also for an unknown path. Any thread may call.
  bool is_read(std::chrono::milliseconds time) const;

private:
  class server;

  std::unique_ptr<server> server_;
};

} // namespace troupe
