// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_device/cudnn_graph.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::cuda::cudnn {

tensor_sizes dense_strides(const tensor_sizes& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

namespace {

descriptor tensor_descriptor(std::int64_t id, cudnnDataType_t type,
                             const tensor_sizes& dims, const tensor_sizes& strides) {
  descriptor result{CUDNN_BACKEND_TENSOR_DESCRIPTOR};
  result.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
    .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims.data())
    .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data())
    .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
    .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
  return result;
}

} // namespace

tensor graph::kept(descriptor& made, const tensor_sizes& dims,
                   const tensor_sizes& strides) {
  parts_.push_back(made.finalize());
  return {made, dims, strides};
}

tensor graph::in_memory(std::int64_t id, cudnnDataType_t type, const tensor_sizes& dims,
                        const tensor_sizes& strides) {
  auto made = tensor_descriptor(id, type, dims, strides);
  return kept(made, dims, strides);
}

tensor graph::scalar(std::int64_t id) {
  constexpr tensor_sizes ones{1, 1, 1, 1};
  auto made = tensor_descriptor(id, CUDNN_DATA_FLOAT, ones, ones);
  made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  return kept(made, ones, ones);
}

tensor graph::intermediate(const tensor_sizes& dims, cudnnDataType_t type) {
  return intermediate(dims, dense_strides(dims), type);
}

tensor graph::intermediate(const tensor_sizes& dims, const tensor_sizes& strides,
                           cudnnDataType_t type) {
  auto made = tensor_descriptor(next_id_++, type, dims, strides);
  made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  return kept(made, dims, strides);
}

void graph::multiply(const tensor& a, const tensor& b, const tensor& product) {
  auto& way = parts_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  way.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
    .finalize();
  operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
    .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, {&a.described})
    .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, {&b.described})
    .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, {&product.described})
    .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, {&way})
    .finalize();
}

void graph::reduce(cudnnReduceTensorOp_t operation, const tensor& x,
                   const tensor& result) {
  auto& way = parts_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  way.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
    .set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, operation)
    .finalize();
  operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
    .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, {&way})
    .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, {&x.described})
    .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, {&result.described})
    .finalize();
}

void graph::reshape(const tensor& x, const tensor& result) {
  operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
    .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, {&x.described})
    .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, {&result.described})
    .finalize();
}

struct graph::pointwise {
  cudnnPointwiseMode_t operation;
  cudnnDataType_t computed = CUDNN_DATA_FLOAT;
  std::int64_t axis = -1;
};

void graph::add(const pointwise& chosen, const tensor& x, const tensor* b,
                const tensor* condition, const tensor& result) {
  auto& way = parts_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  way.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, chosen.operation)
    .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, chosen.computed);
  if (chosen.axis >= 0)
    way.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, chosen.axis);
  way.finalize();
  auto& added = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  added.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, {&way})
    .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, {&x.described})
    .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, {&result.described});
  if (b != nullptr)
    added.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, {&b->described});
  if (condition != nullptr)
    added.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, {&condition->described});
  added.finalize();
}

tensor graph::apply(cudnnPointwiseMode_t mode, const tensor& x) {
  auto result = intermediate(x.dims, x.strides);
  apply(mode, x, nullptr, result);
  return result;
}

tensor graph::apply(cudnnPointwiseMode_t mode, const tensor& x, const tensor& b,
                    cudnnDataType_t type) {
  auto result = intermediate(x.dims, x.strides, type);
  add({mode, type}, x, &b, nullptr, result);
  return result;
}

void graph::apply(cudnnPointwiseMode_t mode, const tensor& x, const tensor* b,
                  const tensor& result) {
  add({mode}, x, b, nullptr, result);
}

tensor graph::select(const tensor& x, const tensor& b, const tensor& condition) {
  auto result = intermediate(x.dims, x.strides);
  add({CUDNN_POINTWISE_BINARY_SELECT}, x, &b, &condition, result);
  return result;
}

tensor graph::index(const tensor& x, std::int64_t axis) {
  auto result = intermediate(x.dims, x.strides, CUDNN_DATA_INT32);
  add({CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis}, x, nullptr, nullptr, result);
  return result;
}

namespace {

constexpr auto as_descriptors = CUDNN_TYPE_BACKEND_DESCRIPTOR;

/// The values of an attribute that has at most `Most`.
template <class Value, std::size_t Most>
std::vector<Value> values_of(const descriptor& owner, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type) {
  std::array<Value, Most> found{};
  std::int64_t count = 0;
  check(library().get(owner.get(), name, type, Most, &count, found.data()), "be asked");
  return {found.begin(), found.begin() + std::min(count, std::int64_t{Most})};
}

/// A descriptor inside another descriptor.
descriptor part_of(const descriptor& owner, cudnnBackendAttributeName_t name,
                   cudnnBackendDescriptorType_t kind) {
  descriptor result{kind};
  auto* raw = result.get();
  std::int64_t count = 0;
  check(library().get(owner.get(), name, as_descriptors, 1, &count, &raw), "be asked");
  return result;
}

/// Whether an engine computes other bits each time.
bool varies(const descriptor& config) {
  const auto engine =
    part_of(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const auto notes =
    values_of<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT>(
      engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
  return std::ranges::find(notes, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) != notes.end();
}

/// The configurations of engines that cuDNN recommends for a graph, the best first.
std::vector<descriptor> recommended(const descriptor& operation_graph) {
  descriptor heuristic{CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR};
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, {&operation_graph})
    .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A)
    .finalize();
  std::int64_t count = 0;
  check(library().get(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, as_descriptors, 0,
                      &count, nullptr),
        "choose an engine");
  std::vector<descriptor> result;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i)
    raw.push_back(result.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  check(library().get(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, as_descriptors,
                      count, &count, raw.data()),
        "choose an engine");
  result.resize(static_cast<std::size_t>(count),
                descriptor{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR});
  return result;
}

} // namespace

plan::plan(const graph& operations, cudnnHandle_t handle)
  : handle_(handle), plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  descriptor all{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const auto& operation : operations.operations())
    raw.push_back(operation.get());
  all.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
    .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, as_descriptors,
         static_cast<std::int64_t>(raw.size()), raw.data())
    .finalize();
  std::string reasons;
  for (const auto& config : recommended(all))
    try {
      if (varies(config))
        continue;
      descriptor made{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
      made.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&config}).finalize();
      workspace_ = values_of<std::int64_t, 1>(
                     made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64)
                     .at(0);
      plan_ = made;
      return;
    } catch (const std::runtime_error& error) {
      reasons += std::string{"; "} + error.what();
    }
  throw std::runtime_error{"cuDNN has no engine for the operations" + reasons};
}

void plan::run(const std::vector<std::pair<std::int64_t, const void*>>& arrays,
               void* workspace, cudaStream_t stream) const {
  std::vector<std::int64_t> ids;
  std::vector<const void*> addresses;
  for (const auto& [id, address] : arrays) {
    ids.push_back(id);
    addresses.push_back(address);
  }
  const auto count = static_cast<std::int64_t>(arrays.size());
  descriptor pack{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR};
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data())
    .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
         addresses.data())
    .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
    .finalize();
  check(library().set_stream(handle_, stream), "use a stream");
  check(library().execute(handle_, plan_.get(), pack.get()), "run a plan");
}

} // namespace troupe::cuda::cudnn
