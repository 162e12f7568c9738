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

// Control lines: connections between processes for small messages, served by CAF's
// middleman.

namespace troupe {

/// A message on a control line: Cap'n Proto bytes, and the kind of these bytes.
struct control_frame {
  using kind = control_kind;

  kind type = kind::node;
  std::uint32_t generation = 0; ///< Attempt of the run; 0 in frames of kind::node.
  wire::bytes text;
};

/// A control line to another process. Thread-safe.
class control_line {
public:
  virtual ~control_line() = default;

  /// Sends a frame; drops the frame if the line has ended.
  virtual void send(control_frame frame) = 0;

  /// Limits the frames that wait to be sent to `bytes` bytes; 64 MiB without this call.
  /// A frame beyond the limit is dropped and ends the line, because the other side does
  /// not read.
  virtual void limit_unsent(std::size_t bytes) = 0;

  /// Ends the line; the destruction of the last handle calls `close()`. After the
  /// return no listener function is called or running, except the call that `close()`
  /// itself is made in.
  virtual void close() = 0;

  void send(const wire::node_message& message) {
    send(control_frame{control_frame::kind::node, 0, wire::encode(message)});
  }
};

/// The callbacks of a control line, called on the middleman's thread. `ended` is called
/// at most once, after all calls of `received`.
struct control_listener {
  std::function<void(control_frame)> received;
  /// Called when the line has ended, but not after close(). For a damaged frame, `why`
  /// says what is wrong, and the callback may still send. `why` is empty if the other
  /// side has closed the line or does not read, or if an exception has been thrown.
  std::function<void(const std::string& why)> ended;
};

/// The reason that a leader reports for a line if control_listener::ended gives none.
inline constexpr const char* closed_line = "it has closed the connection";

/// The addition to `closed_line` if the other side never sent a message.
inline constexpr const char* before_anything = " before it sent anything";

/// The reason that a node reports for a line to another node if control_listener::ended
/// gives none.
inline constexpr const char* line_end = "its control line has ended";

/// The control lines of a process: brokers of CAF's middleman, which reads and writes
/// all lines on one thread. Only sockets after a greeting are added.
class control_lines {
public:
  control_lines();
  ~control_lines();
  control_lines(const control_lines&) = delete;
  control_lines& operator=(const control_lines&) = delete;

  /// Passes a connected socket to the middleman; the line then owns the socket.
  std::shared_ptr<control_line> add(socket_descriptor socket,
                                    control_listener listener);

private:
  struct runtime;
  std::unique_ptr<runtime> runtime_;
};

} // namespace troupe
