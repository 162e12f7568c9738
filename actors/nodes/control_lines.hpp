// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/frame.hpp"
#include "messaging/wire/codec.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// What travels on a control line, in whole: Cap'n Proto bytes, and of which kind.
struct control_frame {
  using kind = control_kind;

  kind what = kind::node;
  std::uint32_t generation = 0;
  wire::bytes text;
};

/// A control line to another process. Its handles may be used from any thread.
class control_line {
public:
  virtual ~control_line() = default;

  /// Sends a frame, or forgets it if the line has ended.
  virtual void send(control_frame what) = 0;

  /// Ends the line as soon as more than `bytes` of frames wait to be sent: the other
  /// side does not read them.
  virtual void limit_unsent(std::size_t bytes) = 0;

  /// Ends the line, as its last handle does. Its listener is not called any more when
  /// this returns, but for the call that this is made in.
  virtual void close() = 0;

  void send(const wire::node_mail& what) {
    send(control_frame{control_frame::kind::node, 0, wire::encode(what)});
  }
};

/// Who hears what comes on a line; each is called on the middleman's thread, `ended`
/// once and last.
struct control_listener {
  std::function<void(control_frame)> heard;
  /// Told why this side has ended the line, as for a damaged frame; what is sent then
  /// still leaves. Empty: the other side has closed it.
  std::function<void(const std::string& why)> ended;
};

/// What a lead knows of a line that the other side has ended.
inline constexpr const char* closed_line = "it has closed the connection";
inline constexpr const char* before_anything = " before it said anything";

/// What a node reports of a line to another node that the other side has ended.
inline constexpr const char* line_end = "its control line has ended";

/// The control lines of a process: brokers of CAF's middleman, which reads and writes
/// all of them by one thread. Only sockets of those who have greeted come here.
class control_lines {
public:
  control_lines();
  ~control_lines();
  control_lines(const control_lines&) = delete;
  control_lines& operator=(const control_lines&) = delete;

  /// Hands a connected socket to the middleman.
  std::shared_ptr<control_line> add(socket_descriptor socket,
                                    control_listener listener);

private:
  struct house;
  std::unique_ptr<house> house_;
};

} // namespace troupe
