// The loader of cuDNN; and src/cuda/cudnn.h compared with NVIDIA's header, if that is installed.
#include <gtest/gtest.h>
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#endif

#include "src/cuda/cudnn.h"

namespace stw::cuda::cudnn {
namespace {

TEST(Cudnn, NamesAMissingLibrary) {
  const auto none = load("/nowhere/libcudnn.so.9"), other = load("libdl.so.2");
  ASSERT_FALSE(none);
  ASSERT_FALSE(other);
  EXPECT_EQ(none.error().code, Code::unsupported);
  for (const char* part : {"/nowhere/libcudnn.so.9", "libcudnn9-cuda-13", "LD_LIBRARY_PATH"})
    EXPECT_NE(none.error().message.find(part), std::string::npos) << none.error().message;
  EXPECT_NE(other.error().message.find("has no cudnn"), std::string::npos) << other.error().message;
}

#if __has_include(<cudnn_graph.h>)
#define STW_SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
STW_SAME(success, CUDNN_STATUS_SUCCESS);
STW_SAME(not_supported, CUDNN_STATUS_NOT_SUPPORTED);
STW_SAME(DescriptorType::pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
STW_SAME(DescriptorType::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
STW_SAME(DescriptorType::engine_config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
STW_SAME(DescriptorType::engine_heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
STW_SAME(DescriptorType::execution_plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
STW_SAME(DescriptorType::knob_choice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
STW_SAME(DescriptorType::pointwise_operation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
STW_SAME(DescriptorType::operation_graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
STW_SAME(DescriptorType::variant_pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
STW_SAME(DescriptorType::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
STW_SAME(DescriptorType::matmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
STW_SAME(DescriptorType::matmul_operation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
STW_SAME(DescriptorType::reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
STW_SAME(DescriptorType::reduction_operation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
STW_SAME(DescriptorType::reshape_operation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
STW_SAME(Attribute::pointwise_mode, CUDNN_ATTR_POINTWISE_MODE);
STW_SAME(Attribute::pointwise_precision, CUDNN_ATTR_POINTWISE_MATH_PREC);
STW_SAME(Attribute::pointwise_axis, CUDNN_ATTR_POINTWISE_AXIS);
STW_SAME(Attribute::heuristics_mode, CUDNN_ATTR_ENGINEHEUR_MODE);
STW_SAME(Attribute::heuristics_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
STW_SAME(Attribute::heuristics_results, CUDNN_ATTR_ENGINEHEUR_RESULTS);
STW_SAME(Attribute::config_engine, CUDNN_ATTR_ENGINECFG_ENGINE);
STW_SAME(Attribute::config_knob_choices, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
STW_SAME(Attribute::plan_handle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
STW_SAME(Attribute::plan_config, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
STW_SAME(Attribute::plan_workspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
STW_SAME(Attribute::knob_type, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
STW_SAME(Attribute::knob_value, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
STW_SAME(Attribute::pointwise_descriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
STW_SAME(Attribute::pointwise_x, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
STW_SAME(Attribute::pointwise_b, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
STW_SAME(Attribute::pointwise_y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
STW_SAME(Attribute::pointwise_t, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
STW_SAME(Attribute::graph_handle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
STW_SAME(Attribute::graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
STW_SAME(Attribute::tensor_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
STW_SAME(Attribute::tensor_type, CUDNN_ATTR_TENSOR_DATA_TYPE);
STW_SAME(Attribute::tensor_dimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
STW_SAME(Attribute::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES);
STW_SAME(Attribute::tensor_id, CUDNN_ATTR_TENSOR_UNIQUE_ID);
STW_SAME(Attribute::tensor_is_virtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
STW_SAME(Attribute::tensor_is_by_value, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
STW_SAME(Attribute::pack_ids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
STW_SAME(Attribute::pack_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
STW_SAME(Attribute::pack_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
STW_SAME(Attribute::engine_graph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
STW_SAME(Attribute::engine_index, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
STW_SAME(Attribute::engine_notes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
STW_SAME(Attribute::matmul_precision, CUDNN_ATTR_MATMUL_COMP_TYPE);
STW_SAME(Attribute::matmul_a, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
STW_SAME(Attribute::matmul_b, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
STW_SAME(Attribute::matmul_c, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
STW_SAME(Attribute::matmul_descriptor, CUDNN_ATTR_OPERATION_MATMUL_DESC);
STW_SAME(Attribute::reduction_operator, CUDNN_ATTR_REDUCTION_OPERATOR);
STW_SAME(Attribute::reduction_precision, CUDNN_ATTR_REDUCTION_COMP_TYPE);
STW_SAME(Attribute::reduction_x, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
STW_SAME(Attribute::reduction_y, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
STW_SAME(Attribute::reduction_descriptor, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
STW_SAME(Attribute::reshape_x, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
STW_SAME(Attribute::reshape_y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
STW_SAME(AttributeType::handle, CUDNN_TYPE_HANDLE);
STW_SAME(AttributeType::data_type, CUDNN_TYPE_DATA_TYPE);
STW_SAME(AttributeType::boolean, CUDNN_TYPE_BOOLEAN);
STW_SAME(AttributeType::int64, CUDNN_TYPE_INT64);
STW_SAME(AttributeType::pointer, CUDNN_TYPE_VOID_PTR);
STW_SAME(AttributeType::heuristics_mode, CUDNN_TYPE_HEUR_MODE);
STW_SAME(AttributeType::knob_type, CUDNN_TYPE_KNOB_TYPE);
STW_SAME(AttributeType::numerical_note, CUDNN_TYPE_NUMERICAL_NOTE);
STW_SAME(AttributeType::pointwise_mode, CUDNN_TYPE_POINTWISE_MODE);
STW_SAME(AttributeType::descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
STW_SAME(AttributeType::reduction_operator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
STW_SAME(DataType::f32, CUDNN_DATA_FLOAT);
STW_SAME(DataType::f16, CUDNN_DATA_HALF);
STW_SAME(DataType::i32, CUDNN_DATA_INT32);
STW_SAME(DataType::bf16, CUDNN_DATA_BFLOAT16);
STW_SAME(DataType::boolean, CUDNN_DATA_BOOLEAN);
STW_SAME(Pointwise::add, CUDNN_POINTWISE_ADD);
STW_SAME(Pointwise::mul, CUDNN_POINTWISE_MUL);
STW_SAME(Pointwise::div, CUDNN_POINTWISE_DIV);
STW_SAME(Pointwise::sub, CUDNN_POINTWISE_SUB);
STW_SAME(Pointwise::exp, CUDNN_POINTWISE_EXP);
STW_SAME(Pointwise::log, CUDNN_POINTWISE_LOG);
STW_SAME(Pointwise::greater_or_equal, CUDNN_POINTWISE_CMP_GE);
STW_SAME(Pointwise::index, CUDNN_POINTWISE_GEN_INDEX);
STW_SAME(Pointwise::select, CUDNN_POINTWISE_BINARY_SELECT);
STW_SAME(Reduction::add, CUDNN_REDUCE_TENSOR_ADD);
STW_SAME(Reduction::max, CUDNN_REDUCE_TENSOR_MAX);
STW_SAME(HeuristicsMode::a, CUDNN_HEUR_MODE_A);
STW_SAME(NumericalNote::nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
#endif

}  // namespace
}  // namespace stw::cuda::cudnn
