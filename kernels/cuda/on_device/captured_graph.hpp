// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/launch_list.hpp"
#include "kernels/cuda/on_device/check.hpp"
#include "kernels/switched_off.hpp"

#include <cuda_runtime.h>

#include <memory>

namespace troupe::cuda {

/// A CUDA graph of launches that were captured on a stream. One call launches the whole
/// graph.
class captured_graph : public launch_graphs::graph {
public:
  captured_graph(const launch_list& what, cudaStream_t on) : on_(on) {
    check(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "capture");
    cudaGraph_t captured = nullptr;
    try {
      what.launch();
    } catch (...) {
      if (cudaStreamEndCapture(on, &captured) == cudaSuccess)
        cudaGraphDestroy(captured);
      throw;
    }
    check(cudaStreamEndCapture(on, &captured), "capture");
    const auto made = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    check(made, "make a graph");
  }

  ~captured_graph() override { cudaGraphExecDestroy(graph_); } // freed when ended

  captured_graph(const captured_graph&) = delete;
  captured_graph& operator=(const captured_graph&) = delete;

  void launch() override { check(cudaGraphLaunch(graph_, on_), "run a graph"); }

private:
  cudaStream_t on_;
  cudaGraphExec_t graph_ = nullptr;
};

/// Returns a function that makes graphs on `stream`; empty if the environment says
/// TROUPE_GRAPHS=off.
inline launch_graphs::graph_maker maker_on(cudaStream_t on) {
  if (switched_off("TROUPE_GRAPHS"))
    return {};
  return [on](const launch_list& what) {
    return std::make_unique<captured_graph>(what, on);
  };
}

} // namespace troupe::cuda
