// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

struct CUstream_st;

// Deferred launches of a stream, and graphs that repeat equal lists of launches.

namespace troupe::cuda {

/// Launches for a stream, in order. Each launch is stored as the bytes of a function
/// object. These bytes are also the key of the list: lists with equal keys launch the
/// same work.
class launch_list {
public:
  /// Appends a launch.
  /// \param launch is copied; its captured values determine the work, and are copied as
  /// bytes
  template <class Launch>
  void add(const Launch& launch) {
    static_assert(std::is_trivially_copyable_v<Launch>);
    static_assert(alignof(Launch) <= alignof(header));
    constexpr auto bytes =
      (sizeof(Launch) + sizeof(header) - 1) / sizeof(header) * sizeof(header);
    const auto end = key_.size();
    key_.resize(end + sizeof(header) + bytes);
    auto* const head = new (&key_[end]) header{call<Launch>, bytes};
    clear_padding(new (head + 1) Launch(launch));
    ++size_;
  }

  /// Calls all launches in order; the list stays as it is.
  /// \throws the exceptions of the launches
  void launch() const {
    for (std::size_t i = 0; i < key_.size();) {
      const auto& head = *reinterpret_cast<const header*>(&key_[i]);
      head.call(&head + 1);
      i += sizeof head + head.bytes;
    }
  }

  /// Empties the list, and keeps the capacity: the next list has about the same size.
  void clear() {
    key_.clear();
    size_ = 0;
  }

  const std::vector<unsigned char>& key() const { return key_; }
  std::size_t size() const { return size_; }

private:
  /// Precedes the function object of a launch.
  struct header {
    void (*call)(const void* launch); ///< Also the type of the function object.
    std::size_t bytes;                ///< Size of the function object, rounded up.
  };

  template <class Launch>
  static void call(const void* launch) {
    (*static_cast<const Launch*>(launch))();
  }

  /// Makes equal function objects equal in all bytes, if the compiler can.
  template <class Launch>
  static void clear_padding([[maybe_unused]] Launch* launch) {
#ifdef __has_builtin
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(launch);
#endif
#endif
  }

  std::vector<unsigned char> key_;
  std::size_t size_ = 0;
};

/// Launches lists, and keeps graphs of repeated lists. A list of two or more launches
/// that comes a second time becomes a graph. The graph is launched as a whole, then and
/// at every repetition. A repeated action with unchanged buffers then launches hundreds
/// of kernels in the time of a few. For one thread at a time.
class launch_graphs {
public:
  class graph {
  public:
    virtual ~graph() = default;
    virtual void launch() = 0;
  };

  using graph_maker = std::function<std::unique_ptr<graph>(const launch_list& list)>;

  /// \param make creates the graph of a list; empty if no graphs are created
  explicit launch_graphs(graph_maker make) : make_(std::move(make)) {}

  /// Launches the list, and empties the list, even on failure.
  /// \throws the exceptions of the launches
  void launch(launch_list& list);

  /// Number of lists that are remembered. At this number, lists without a graph are
  /// forgotten; or all lists, if each has a graph.
  static constexpr std::size_t most_known = 256;

private:
  /// A list that was launched, and the list's graph; null at first.
  struct known_list {
    std::vector<unsigned char> key;
    std::unique_ptr<graph> repeated;
  };

  void launch_all(const launch_list& list);

  graph_maker make_;
  std::unordered_map<std::uint64_t, known_list> known_; // by a hash of the key
};

/// The list to which this thread defers launches on a stream; null if this thread
/// launches immediately.
launch_list* deferred_on(const CUstream_st* stream);

/// Adds a launch on a stream to the list of deferred_on(); without a list, launches
/// immediately.
/// \param launch a trivially copyable function object; its captured values determine
/// the work
template <class Launch>
void launch_or_defer(const CUstream_st* stream, const Launch& launch) {
  if (auto* const list = deferred_on(stream))
    list->add(launch);
  else
    launch();
}

/// While an object lives, this thread defers launches on a stream.
class deferral {
public:
  /// \pre no other deferral lives on this thread
  /// \pre the destructor runs on this thread
  /// \param to receives the launches; must outlive this object
  deferral(const CUstream_st* stream, launch_list& to);
  ~deferral();
  deferral(const deferral&) = delete;
  deferral& operator=(const deferral&) = delete;
};

} // namespace troupe::cuda
