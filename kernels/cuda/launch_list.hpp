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

namespace troupe::cuda {

/// What is to be launched on a stream, in order, and all that it depends on: lists with
/// one key launch the same.
class launch_list {
public:
  /// \param facts kernel, sizes and arguments: what `launch` launches follows from them
  template <class... Facts>
  void add(std::function<void()> launch, const Facts&... facts) {
    (note(facts), ...);
    launches_.push_back(std::move(launch));
  }

  void launch() const {
    for (const auto& one : launches_)
      one();
  }

  /// Keeps its room: what is written down next takes about as much.
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
    __builtin_clear_padding(&fact); // else lists may differ that launch the same
#endif
#endif
    key_.append(reinterpret_cast<const char*>(&fact), sizeof fact);
  }

  std::vector<std::function<void()>> launches_;
  std::string key_;
};

/// Lists that have been launched before. One that comes a second time is made a graph,
/// which is launched at once, then and whenever it comes again: an action with the same
/// buffers launches hundreds of kernels in the time of a few. For one thread at a time.
class launch_graphs {
public:
  class graph {
  public:
    virtual ~graph() = default;
    virtual void launch() = 0;
  };

  using graph_maker = std::function<std::unique_ptr<graph>(const launch_list& what)>;

  /// \param make may be empty: there are no graphs
  explicit launch_graphs(graph_maker make) : make_(std::move(make)) {}

  /// Empties the list, too. \throws what launching does
  void launch(launch_list& what);

  static constexpr std::size_t most_known = 256;

private:
  void launch_all(const launch_list& what);

  graph_maker make_;
  std::unordered_map<std::string, std::unique_ptr<graph>> known_; // null: seen once
};

/// Where this thread writes down what it launches on a stream; null: it launches.
launch_list* deferred_on(const CUstream_st* stream);

/// While one lives, this thread writes down what it launches on a stream.
class deferral {
public:
  /// \pre none lives on this thread \param to outlives it
  deferral(const CUstream_st* on, launch_list& to);
  ~deferral();
  deferral(const deferral&) = delete;
  deferral& operator=(const deferral&) = delete;
};

} // namespace troupe::cuda
