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

/// The tensor links of a process to the others of a run, and the one thread that reads
/// and writes all of them. As it is one, a buffer that has been written is free again
/// before any answer to it is delivered: so pools need no more room than in one
/// process.
class switchboard {
public:
  /// \param receiver outlives it \throws std::system_error if there is no thread
  switchboard(session_id of, std::uint64_t most_payload_bytes,
              frame_receiver& receiver);

  /// As close().
  ~switchboard();
  switchboard(const switchboard&) = delete;
  switchboard& operator=(const switchboard&) = delete;

  /// A link to another process. \param stream whose hands have been shaken
  void add(int peer, std::unique_ptr<byte_stream> stream);

  /// Sends a frame, or forgets it if there is no such link any more. From any thread.
  void send(int peer, outgoing_frame what);

  /// Waits until a frame that its receiver has in whole is free here: for who hears of
  /// that by another way than a link.
  void settle() { const std::lock_guard guard{at_work_}; }

  /// Ends all links and the thread. Frames that have not been sent are forgotten. The
  /// receiver is not called any more.
  void close();

  /// Bytes that all links have read and written.
  std::int64_t moved() const { return moved_; }

  /// Frames of older generations that came, and were dropped, on links that have ended.
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
  bool awake_ = false; // it has been told to look
  std::mutex at_work_; // while links read and write
  std::atomic<std::int64_t> stale_ = 0;
  std::atomic<std::int64_t> moved_ = 0;
  std::map<int, tensor_link> links_; // of the thread
  std::thread thread_;
};

} // namespace troupe
