// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/launch_list.hpp"
#include "kernels/cuda/on_device/check.hpp"
#include "kernels/switched_off.hpp"

#include <cuda_runtime.h>

#include <memory>

namespace troupe::cuda {

/// A CUDA graph of launches that were captured on a stream. One call launches the whole
/// graph. The stream must outlive this object.
class captured_graph : public launch_graphs::graph {
public:
  /// Captures the launches, and runs none.
  /// \throws the exceptions of the launches
  /// \throws as check() does
  captured_graph(const launch_list& launches, cudaStream_t stream) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    cudaGraph_t captured = nullptr;
    try {
      launches.launch();
    } catch (...) {
      if (cudaStreamEndCapture(stream, &captured) == cudaSuccess)
        cudaGraphDestroy(captured);
      throw;
    }
    check(cudaStreamEndCapture(stream, &captured), "capture");
    const auto status = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    check(status, "make a graph");
  }

  ~captured_graph() override { cudaGraphExecDestroy(graph_); } // freed when ended

  captured_graph(const captured_graph&) = delete;
  captured_graph& operator=(const captured_graph&) = delete;

  void launch() override { check(cudaGraphLaunch(graph_, stream_), "run a graph"); }

private:
  cudaStream_t stream_;
  cudaGraphExec_t graph_ = nullptr;
};

/// Returns a function that makes graphs on `stream`; empty if the environment says
/// TROUPE_GRAPHS=off. The stream must outlive the graphs.
inline launch_graphs::graph_maker make_graph_maker(cudaStream_t stream) {
  if (switched_off("TROUPE_GRAPHS"))
    return {};
  return [stream](const launch_list& launches) {
    return std::make_unique<captured_graph>(launches, stream);
  };
}

} // namespace troupe::cuda
