// SPDX-License-Identifier: BSD-3-Clause
// Communicators of real GPUs, by NCCL.

#include "kernels/cuda/communicator.hpp"
#include "kernels/cuda/on_device/library.hpp"
#include "kernels/switched_off.hpp"
#include "kernels/threads.hpp"

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace troupe::cuda {

namespace {

static_assert(sizeof(ncclUniqueId) == sizeof(group_id));

/// The functions of NCCL, loaded when the first group is made: programs start without
/// NCCL.
struct nccl_library {
  decltype(&ncclGetUniqueId) make_id;
  decltype(&ncclCommInitRankConfig) join;
  decltype(&ncclCommGetAsyncError) state_of;
  decltype(&ncclCommFinalize) finish;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGroupStart) begin_together;
  decltype(&ncclGroupEnd) end_together;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclGetErrorString) text_of;
  decltype(&ncclGetLastError) last_error;
  /// Why NCCL is missing, in one sentence; empty: all functions are there.
  std::string load_error;

  nccl_library() {
    try {
      const library loaded{"NCCL", NCCL_MAJOR, "libnccl.so"};
      loaded.find("ncclGetUniqueId", make_id);
      loaded.find("ncclCommInitRankConfig", join);
      loaded.find("ncclCommGetAsyncError", state_of);
      loaded.find("ncclCommFinalize", finish);
      loaded.find("ncclCommDestroy", destroy);
      loaded.find("ncclCommAbort", abort);
      loaded.find("ncclGroupStart", begin_together);
      loaded.find("ncclGroupEnd", end_together);
      loaded.find("ncclSend", send);
      loaded.find("ncclRecv", receive);
      loaded.find("ncclGetErrorString", text_of);
      loaded.find("ncclGetLastError", last_error);
    } catch (const std::runtime_error& error) {
      load_error = error.what();
    }
  }
};

const nccl_library& nccl() {
  static const nccl_library loaded;
  return loaded;
}

using namespace std::chrono_literals;

/// A communicator whose NCCL calls return before the operation is done. The calling
/// thread polls until the operation is done. So no thread is inside NCCL when the group
/// is ended. A second thread polls for failures of NCCL, and ends a group that would
/// wait for ever.
class nccl_communicator : public communicator {
public:
  nccl_communicator(stream& gpu_stream, const group_member& as,
                    const std::atomic<bool>& ended)
    : stream_(gpu_stream) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.maxCTAs = as.blocks;
    ncclUniqueId id;
    std::memcpy(&id, as.group.data(), sizeof id);
    try {
      gpu_stream.handle(); // NCCL uses the current GPU
      check(nccl().join(&group_, as.members, id, as.member, &config), "join a group");
      await("join a group", &ended);
      watch_thread_ = start_thread(1, [this] { watch(); });
    } catch (...) {
      nccl_communicator::abort();
      throw;
    }
  }

  ~nccl_communicator() override {
    {
      const std::lock_guard guard{lock_};
      is_closing_ = true;
    }
    news_.notify_one();
    watch_thread_.join();
    const std::lock_guard guard{lock_};
    if (group_ == nullptr)
      return;
    stream_.handle();
    auto state = nccl().finish(group_);
    for (const auto late = std::chrono::steady_clock::now() + finish_timeout;
         state == ncclInProgress && std::chrono::steady_clock::now() < late;
         std::this_thread::sleep_for(poll_interval))
      if (nccl().state_of(group_, &state) != ncclSuccess)
        break;
    if (state == ncclSuccess)
      nccl().destroy(group_);
    else
      nccl().abort(group_);
  }

  nccl_communicator(const nccl_communicator&) = delete;
  nccl_communicator& operator=(const nccl_communicator&) = delete;

  void exchange(std::span<const transfer> transfers) override {
    constexpr auto operation = "exchange arrays";
    stream_.launch_captured();
    {
      const std::lock_guard guard{lock_};
      throw_if_ended();
      auto* const stream = stream_.handle();
      check(nccl().begin_together(), operation);
      for (const auto& entry : transfers) {
        const auto count = static_cast<std::size_t>(entry.count);
        const auto state =
          entry.direction == transfer::way::send
            ? nccl().send(entry.values, count, ncclFloat32, entry.peer, group_, stream)
            : nccl().receive(entry.values, count, ncclFloat32, entry.peer, group_,
                             stream);
        if (state != ncclSuccess && state != ncclInProgress) {
          (void)nccl().end_together();
          check(state, operation);
        }
      }
      check(nccl().end_together(), operation);
    }
    await(operation);
  }

  void abort() noexcept override {
    aborted_ = true;
    const std::lock_guard guard{lock_};
    if (group_ != nullptr)
      nccl().abort(group_);
    group_ = nullptr;
  }

  void check() override {
    const std::lock_guard guard{lock_};
    throw_if_ended();
    check_async_error();
  }

private:
  static constexpr auto poll_interval = 20us;
  static constexpr auto check_interval = 100ms;
  static constexpr auto finish_timeout = 2s; // limit for other members to end

  static void check(ncclResult_t state, const char* operation) {
    if (state != ncclSuccess && state != ncclInProgress)
      throw std::runtime_error{std::string{"NCCL cannot "} + operation + ": "
                               + nccl().text_of(state) + ": "
                               + nccl().last_error(nullptr)};
  }

  /// Waits until the operation is done on this side: launched, or joined. \throws
  /// std::runtime_error if the operation failed, or the group was ended
  void await(const char* operation, const std::atomic<bool>* ended = nullptr) {
    for (;;) {
      auto state = ncclSuccess;
      {
        const std::lock_guard guard{lock_};
        throw_if_ended();
        if (aborted_ || (ended != nullptr && *ended))
          throw std::runtime_error{was_ended};
        check(nccl().state_of(group_, &state), operation);
      }
      if (state != ncclInProgress)
        return check(state, operation);
      std::this_thread::sleep_for(poll_interval);
    }
  }

  static constexpr auto was_ended = "the group of GPUs has been ended";

  // Functions that a caller calls with the lock: \pre the lock is held

  void throw_if_ended() const {
    if (group_ == nullptr)
      throw std::runtime_error{failure_.empty() ? was_ended : failure_};
  }

  void check_async_error() const {
    auto state = ncclSuccess;
    check(nccl().state_of(group_, &state), "exchange arrays");
    check(state, "exchange arrays");
  }

  void watch() {
    std::unique_lock guard{lock_};
    while (!news_.wait_for(guard, check_interval, [this] { return is_closing_; })
           && group_ != nullptr)
      try {
        check_async_error();
      } catch (const std::runtime_error& failed) {
        failure_ = failed.what();
        nccl().abort(group_);
        group_ = nullptr;
      }
  }

  stream& stream_;
  std::atomic<bool> aborted_ = false;
  std::thread watch_thread_;
  std::mutex lock_; // of the members below
  std::condition_variable news_;
  bool is_closing_ = false;
  std::string failure_;        // of NCCL, which ended the group
  ncclComm_t group_ = nullptr; // null: ended
};

} // namespace

std::string absence_of_communicators() {
  if (switched_off("TROUPE_NCCL"))
    return "TROUPE_NCCL says off";
  if (auto why = unavailable_reason(); !why.empty())
    return why;
  return nccl().load_error;
}

group_id new_group() {
  if (const auto& why = nccl().load_error; !why.empty())
    throw std::runtime_error{why};
  ncclUniqueId id;
  if (const auto state = nccl().make_id(&id); state != ncclSuccess)
    throw std::runtime_error{std::string{"NCCL cannot make a group: "}
                             + nccl().text_of(state)};
  group_id result;
  std::memcpy(result.data(), &id, sizeof id);
  return result;
}

std::unique_ptr<communicator> join_group(stream& gpu_stream, const group_member& as,
                                         const std::atomic<bool>& ended) {
  if (const auto& why = nccl().load_error; !why.empty())
    throw std::runtime_error{why};
  return std::make_unique<nccl_communicator>(gpu_stream, as, ended);
}

} // namespace troupe::cuda
