// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

struct CUstream_st;

// Deferred launches of a stream, and graphs that repeat equal lists of launches.

namespace troupe::cuda {

/// Launches for a stream, in order, with a key of everything that the launches depend
/// on. Lists with equal keys launch the same work.
class launch_list {
public:
  /// Appends a launch.
  /// \param facts kernel, sizes and arguments, which determine the work of `launch`
  template <class... Facts>
  void add(std::function<void()> launch, const Facts&... facts) {
    (note(facts), ...);
    launches_.push_back(std::move(launch));
  }

  /// Calls all launches in order; the list stays as it is.
  /// \throws the exceptions of the launches
  void launch() const {
    for (const auto& deferred : launches_)
      deferred();
  }

  /// Empties the list, and keeps the capacity: the next list has about the same size.
  void clear() {
    launches_.clear();
    key_.clear();
  }

  const std::string& key() const { return key_; }
  std::size_t size() const { return launches_.size(); }

private:
  template <class Fact>
  void note(Fact fact) {
    static_assert(std::is_trivially_copyable_v<Fact>);
#ifdef __has_builtin
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&fact); // else equal lists may differ in padding
#endif
#endif
    key_.append(reinterpret_cast<const char*>(&fact), sizeof fact);
  }

  std::vector<std::function<void()>> launches_;
  std::string key_;
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
  void launch_all(const launch_list& list);

  graph_maker make_;
  std::unordered_map<std::string, std::unique_ptr<graph>> known_; // null at first
};

/// The list to which this thread defers launches on a stream; null if this thread
/// launches immediately.
launch_list* deferred_on(const CUstream_st* stream);

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
