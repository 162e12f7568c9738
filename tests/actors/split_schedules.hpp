// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/program.hpp"
#include "schedules/schedule.hpp"

#include <algorithm>
#include <vector>

namespace tiny {

using namespace troupe;

/// All forwards; then input gradients one ahead of weight gradients.
inline schedule split_ahead() {
  return {.name = "split ahead",
          .order = batch_by_batch([](int rank, const shape& dims) {
            std::vector<action> result;
            const int m = dims.microbatches;
            for (int i = 0; i < m; ++i)
              result.push_back({op::forward, 0, rank, i});
            for (int i = 0; i <= m; ++i) {
              if (i < m)
                result.push_back({op::input_gradient, 0, rank, i});
              if (i > 0)
                result.push_back({op::weight_gradient, 0, rank, i - 1});
            }
            result.push_back({op::update, 0, rank, m - 1});
            return result;
          })};
}

/// 1F1B, whose backwards are an input gradient and then at once the weight gradient.
inline schedule split_at_once() {
  return {.name = "split at once",
          .order = batch_by_batch([](int rank, const shape& dims) {
            std::vector<action> result;
            const int m = dims.microbatches, ahead = std::min(m, dims.stages - rank);
            for (int i = 0; i < ahead; ++i)
              result.push_back({op::forward, 0, rank, i});
            for (int i = 0; i < m; ++i) {
              result.push_back({op::input_gradient, 0, rank, i});
              result.push_back({op::weight_gradient, 0, rank, i});
              if (i + ahead < m)
                result.push_back({op::forward, 0, rank, i + ahead});
            }
            result.push_back({op::update, 0, rank, m - 1});
            return result;
          })};
}

} // namespace tiny
