// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/tensor_link.hpp"
#include "messaging/links/waker.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

/// The tensor links of a process to the other processes of a run, and the one thread
/// that reads and writes all links. Because one thread reads and writes, a written
/// buffer is free again before a link delivers an answer to the buffer's message. A
/// caller that receives answers by another way calls settle() first. Pools therefore
/// need no more buffers than within one process.
class tensor_links {
public:
  /// \param receiver outlives this object; is called on the links' thread
  /// \throws no_thread if no thread can be started
  tensor_links(session_id session, std::uint64_t most_payload_bytes,
               frame_receiver& receiver);

  /// Calls close().
  ~tensor_links();
  tensor_links(const tensor_links&) = delete;
  tensor_links& operator=(const tensor_links&) = delete;

  /// Adds a link to another process. While a peer has a link, a second link of that
  /// peer is closed. Thread: any.
  /// \param stream with a complete handshake
  void add(int peer, std::unique_ptr<byte_stream> stream);

  /// Sends a frame. Drops the frame if there is no link to the peer, if the link has
  /// ended, or after close(). Thread: any.
  void send(int peer, outgoing_frame frame);

  /// Waits until this process has released the buffers of every frame that a peer has
  /// already received completely. For a caller that learns of the receipt by another
  /// way than a link. Thread: any except the links' thread, so not the receiver.
  void settle() { const std::lock_guard guard{at_work_}; }

  /// Ends all links and the thread. Unsent frames are dropped. The receiver gets no
  /// calls after close() has returned, and no call of lost() for the ended links.
  /// \pre the receiver does not call close()
  void close();

  /// Number of bytes that all links have read and written so far.
  std::int64_t moved() const { return moved_; }

  /// Number of received frames of older generations, which were dropped. Counts only
  /// links that have ended.
  std::int64_t stale() const { return stale_; }

private:
  void work();
  void take_orders();
  std::string move(tensor_link& link, bool readable);
  void lose(int peer, const std::string& why);

  session_id session_;
  std::uint64_t most_payload_bytes_;
  frame_receiver& receiver_;
  waker wakes_;
  std::mutex lock_;
  std::vector<std::pair<int, std::unique_ptr<byte_stream>>> added_;
  std::vector<std::pair<int, outgoing_frame>> orders_;
  bool stopping_ = false;
  bool awake_ = false; // the thread has been woken
  std::mutex at_work_; // while links read and write
  std::atomic<std::int64_t> stale_ = 0;
  std::atomic<std::int64_t> moved_ = 0;
  std::map<int, tensor_link> links_; // used by the thread only
  std::thread thread_;
};

} // namespace troupe
