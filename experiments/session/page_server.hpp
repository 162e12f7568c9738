#pragma once

#include <tl/expected.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace troupe {

/// Serves a few texts by HTTP to browsers on this machine, on threads of its own. It
/// listens on the loopback interface alone, knows only GET and HEAD, and answers only
/// who asks for this machine by name (Host: localhost or 127.0.0.1): so no page of
/// another site reads what is here through a browser. Texts may be put from any thread;
/// that never waits for a client.
class page_server {
public:
  /// \param port 0: any that is free
  /// On error says why nobody can listen there.
  static tl::expected<std::unique_ptr<page_server>, std::string> at(int port);

  /// Ends it, and does not wait for clients that neither ask nor take their answer.
  ~page_server();
  page_server(const page_server&) = delete;
  page_server& operator=(const page_server&) = delete;

  /// http://127.0.0.1:PORT/
  std::string address() const;

  /// From now on GET of `path` gives `text`, in place of another.
  /// \param type text/html or application/json
  void put(const std::string& path, std::string text, const std::string& type);

  /// Whether somebody has asked within so long.
  bool is_read(std::chrono::milliseconds within) const;

private:
  struct state;
  explicit page_server(std::shared_ptr<state> all) : state_(std::move(all)) {}

  std::shared_ptr<state> state_; // its threads have it too
};

/// Whether a server was left with a client that it does not get rid of. Then the
/// process can end only without destroying what is global: by std::_Exit.
bool is_serving_for_good();

} // namespace troupe
