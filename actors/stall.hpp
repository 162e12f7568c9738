#pragma once

#include "actors/messages.hpp"
#include "actors/notice_board.hpp"
#include "kernels/device.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

/// Who waits for whom, and the cycle if there is one, in words.
std::string describe_stall(const std::vector<mail::waiting_for>& answers);

/// Ends a run in real time in which no action runs and none has ended for a while. Has
/// a thread of its own: the actors' threads may all be waiting.
class watcher {
public:
  /// \param ask makes the coordinator collect explanations on the board
  watcher(const activity& seen, std::chrono::milliseconds timeout, notice_board& board,
          std::function<void()> ask);
  ~watcher();
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

private:
  void watch();
  bool sleep(std::chrono::milliseconds how_long);
  void report();

  const activity& seen_;
  std::chrono::milliseconds timeout_;
  notice_board& board_;
  std::function<void()> ask_;
  std::mutex lock_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace troupe
