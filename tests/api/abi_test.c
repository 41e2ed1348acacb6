/* The frozen binary interface: sizes and offsets of every public struct on LP64 platforms (x86-64, aarch64), and the
 * value of every constant. Structs grow only at their end. A change of a line here needs another SONAME. */
#include "stowage.h"
#include "stowage/dlpack.h"

#include <assert.h>
#include <stddef.h>

static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8 && sizeof(float) == 4 && sizeof(double) == 8, "LP64");
static_assert(sizeof(stw_status) == 4 && (stw_status)-1 < 0, "int32_t");

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#define AT(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field)
#define VALUE(name, value) static_assert((name) == (value), #name)

SIZE(DLManagedTensorVersioned, 80);
AT(DLManagedTensorVersioned, version, 0); AT(DLManagedTensorVersioned, manager_ctx, 8); AT(DLManagedTensorVersioned, deleter, 16);
AT(DLManagedTensorVersioned, flags, 24); AT(DLManagedTensorVersioned, dl_tensor, 32);
SIZE(DLTensor, 48);
AT(DLTensor, data, 0); AT(DLTensor, device, 8); AT(DLTensor, ndim, 16); AT(DLTensor, dtype, 20); AT(DLTensor, shape, 24);
AT(DLTensor, strides, 32); AT(DLTensor, byte_offset, 40);

SIZE(stw_error, 512);
AT(stw_error, struct_size, 0); AT(stw_error, status, 4); AT(stw_error, native_code, 8); AT(stw_error, reserved, 12);
AT(stw_error, bytes_needed, 16); AT(stw_error, bytes_available, 24); AT(stw_error, message, 32);

SIZE(stw_watch_info, 40);
AT(stw_watch_info, struct_size, 0); AT(stw_watch_info, work, 4); AT(stw_watch_info, unit, 8); AT(stw_watch_info, reserved, 12);
AT(stw_watch_info, done, 16); AT(stw_watch_info, total, 24); AT(stw_watch_info, share, 32);

SIZE(stw_watch_options, 32);
AT(stw_watch_options, struct_size, 0); AT(stw_watch_options, set_mask, 4); AT(stw_watch_options, notify, 8);
AT(stw_watch_options, user, 16); AT(stw_watch_options, interval_milliseconds, 24); AT(stw_watch_options, reserved, 28);

SIZE(stw_device_options, 104);
AT(stw_device_options, struct_size, 0); AT(stw_device_options, backend, 4); AT(stw_device_options, ordinal, 8);
AT(stw_device_options, threads, 12); AT(stw_device_options, isa, 16); AT(stw_device_options, log_level, 20);
AT(stw_device_options, stream, 24); AT(stw_device_options, log, 32); AT(stw_device_options, log_user, 40);
AT(stw_device_options, allocate, 48); AT(stw_device_options, release, 56); AT(stw_device_options, memory_user, 64);
AT(stw_device_options, run, 72); AT(stw_device_options, run_user, 80);
AT(stw_device_options, cublaslt, 88); AT(stw_device_options, cudnn, 96);

SIZE(stw_device_info, 136);
AT(stw_device_info, struct_size, 0); AT(stw_device_info, backend, 4); AT(stw_device_info, memory_total, 8);
AT(stw_device_info, memory_free, 16); AT(stw_device_info, compute_major, 24); AT(stw_device_info, compute_minor, 28);
AT(stw_device_info, threads, 32); AT(stw_device_info, isa, 36); AT(stw_device_info, name, 40);
AT(stw_device_info, profile, 104); AT(stw_device_info, memory_reserved, 128);

SIZE(stw_memory_holder, 88);
AT(stw_memory_holder, struct_size, 0); AT(stw_memory_holder, reserved, 4); AT(stw_memory_holder, process, 8);
AT(stw_memory_holder, bytes, 16); AT(stw_memory_holder, name, 24);

SIZE(stw_log_message, 272);
AT(stw_log_message, struct_size, 0); AT(stw_log_message, level, 4); AT(stw_log_message, number, 8);
AT(stw_log_message, component, 16); AT(stw_log_message, text, 48);

SIZE(stw_model_options, 112);
AT(stw_model_options, struct_size, 0); AT(stw_model_options, set_mask, 4); AT(stw_model_options, source, 8);
AT(stw_model_options, config_json, 16); AT(stw_model_options, config_json_size, 24); AT(stw_model_options, weights, 32);
AT(stw_model_options, seed, 40); AT(stw_model_options, dropout, 48); AT(stw_model_options, reserved, 52);
AT(stw_model_options, adapter, 56); AT(stw_model_options, adapter_targets, 64); AT(stw_model_options, adapter_rank, 72);
AT(stw_model_options, adapter_flags, 76); AT(stw_model_options, adapter_alpha, 80); AT(stw_model_options, adapter_dropout, 84);
AT(stw_model_options, label_names, 88); AT(stw_model_options, label_count, 96); AT(stw_model_options, task, 104);
AT(stw_model_options, reserved_end, 108);

SIZE(stw_model_info, 120);
AT(stw_model_info, struct_size, 0); AT(stw_model_info, layers, 4); AT(stw_model_info, parameters, 8);
AT(stw_model_info, trainable, 16); AT(stw_model_info, vocabulary, 24); AT(stw_model_info, positions, 32);
AT(stw_model_info, has_weights, 40); AT(stw_model_info, width, 44); AT(stw_model_info, architecture, 48);
AT(stw_model_info, adapter_rank, 80); AT(stw_model_info, has_codes, 84); AT(stw_model_info, labels, 88); AT(stw_model_info, padding_token, 96); AT(stw_model_info, generates, 104); AT(stw_model_info, token_types, 108);
AT(stw_model_info, task, 112); AT(stw_model_info, head_is_new, 116);

SIZE(stw_tensor_info, 56);
AT(stw_tensor_info, struct_size, 0); AT(stw_tensor_info, ndim, 4); AT(stw_tensor_info, name, 8);
AT(stw_tensor_info, shape, 16); AT(stw_tensor_info, elements, 48);

SIZE(stw_parameter_group, 40);
AT(stw_parameter_group, struct_size, 0); AT(stw_parameter_group, set_mask, 4); AT(stw_parameter_group, pattern, 8);
AT(stw_parameter_group, frozen, 16); AT(stw_parameter_group, state_bits, 20);
AT(stw_parameter_group, learning_rate, 24); AT(stw_parameter_group, weight_decay, 32);

SIZE(stw_plan_options, 168);
AT(stw_plan_options, struct_size, 0); AT(stw_plan_options, set_mask, 4); AT(stw_plan_options, memory_bytes, 8);
AT(stw_plan_options, global_batch, 16); AT(stw_plan_options, sequence, 24); AT(stw_plan_options, device, 32);
AT(stw_plan_options, device_memory, 40); AT(stw_plan_options, reserve_bytes, 48); AT(stw_plan_options, threads, 56);
AT(stw_plan_options, precision, 60); AT(stw_plan_options, optimizer, 64); AT(stw_plan_options, state_bits, 68);
AT(stw_plan_options, micro_batch, 72); AT(stw_plan_options, recompute, 76); AT(stw_plan_options, mode, 80);
AT(stw_plan_options, inputs, 84); AT(stw_plan_options, host_bytes, 88); AT(stw_plan_options, profile, 96);
AT(stw_plan_options, profile_size, 104); AT(stw_plan_options, groups, 112); AT(stw_plan_options, group_count, 120);
AT(stw_plan_options, master, 128); AT(stw_plan_options, kernels, 132); AT(stw_plan_options, gradients, 136);
AT(stw_plan_options, fused_update, 140); AT(stw_plan_options, attention, 144); AT(stw_plan_options, quantize, 148);
AT(stw_plan_options, quantize_embeddings, 152); AT(stw_plan_options, preference, 156); AT(stw_plan_options, watch, 160);

SIZE(stw_plan_info, 272);
AT(stw_plan_info, struct_size, 0); AT(stw_plan_info, fits, 4); AT(stw_plan_info, micro_batch, 8);
AT(stw_plan_info, accumulation_steps, 16); AT(stw_plan_info, last_micro_batch, 24); AT(stw_plan_info, loss_chunks, 32);
AT(stw_plan_info, global_batch, 40); AT(stw_plan_info, sequence, 48); AT(stw_plan_info, parameters, 56);
AT(stw_plan_info, gradients, 64); AT(stw_plan_info, optimizer, 72); AT(stw_plan_info, saved_activations, 80);
AT(stw_plan_info, transient, 88); AT(stw_plan_info, workspace, 96); AT(stw_plan_info, inputs, 104);
AT(stw_plan_info, padding, 112); AT(stw_plan_info, arena, 120); AT(stw_plan_info, reserve, 128);
AT(stw_plan_info, peak, 136); AT(stw_plan_info, budget, 144); AT(stw_plan_info, host, 152);
AT(stw_plan_info, minimum_bytes, 160); AT(stw_plan_info, state_bits, 168); AT(stw_plan_info, precision, 172);
AT(stw_plan_info, step_seconds, 176); AT(stw_plan_info, tokens_per_second, 184);
AT(stw_plan_info, recompute_fraction, 192); AT(stw_plan_info, fingerprint, 200);
AT(stw_plan_info, proven, 220); AT(stw_plan_info, bound_seconds, 224); AT(stw_plan_info, unlimited_seconds, 232);
AT(stw_plan_info, next_gib_seconds, 240); AT(stw_plan_info, copied_bytes, 248);
AT(stw_plan_info, tiled_blocks, 256); AT(stw_plan_info, tile_rows, 264);

SIZE(stw_relaxation_info, 96);
AT(stw_relaxation_info, struct_size, 0); AT(stw_relaxation_info, changes_numerics, 4);
AT(stw_relaxation_info, saves_bytes, 8); AT(stw_relaxation_info, costs_fraction, 16); AT(stw_relaxation_info, change, 24);
AT(stw_relaxation_info, fits, 88); AT(stw_relaxation_info, reserved, 92);

SIZE(stw_frontier_point, 48);
AT(stw_frontier_point, struct_size, 0); AT(stw_frontier_point, is_knee, 4); AT(stw_frontier_point, peak, 8);
AT(stw_frontier_point, micro_batch, 16); AT(stw_frontier_point, loss_chunks, 24);
AT(stw_frontier_point, step_seconds, 32); AT(stw_frontier_point, tokens_per_second, 40);

SIZE(stw_profile_info, 120);
AT(stw_profile_info, struct_size, 0); AT(stw_profile_info, is_cuda, 4); AT(stw_profile_info, memory, 8);
AT(stw_profile_info, reserve, 16); AT(stw_profile_info, gflops_fp32, 24); AT(stw_profile_info, gflops_bf16, 32);
AT(stw_profile_info, gbytes_per_second, 40); AT(stw_profile_info, product_permille, 48);
AT(stw_profile_info, stream_permille, 52); AT(stw_profile_info, launch_nanoseconds, 56);
AT(stw_profile_info, name, 64); AT(stw_profile_info, title, 72); AT(stw_profile_info, source, 80);
AT(stw_profile_info, host_gbytes_per_second, 88); AT(stw_profile_info, threads, 96);
AT(stw_profile_info, precision, 100); AT(stw_profile_info, step_nanoseconds, 104);
AT(stw_profile_info, kernels, 112); AT(stw_profile_info, reserved, 116);

SIZE(stw_offload_info, 32);
AT(stw_offload_info, struct_size, 0); AT(stw_offload_info, outside_blocks, 4); AT(stw_offload_info, blocks, 8);
AT(stw_offload_info, reserved, 12); AT(stw_offload_info, bytes, 16); AT(stw_offload_info, tensors, 24);

SIZE(stw_profile_op_info, 32);
AT(stw_profile_op_info, struct_size, 0); AT(stw_profile_op_info, permille, 4);
AT(stw_profile_op_info, launch_nanoseconds, 8); AT(stw_profile_op_info, nanoseconds, 16);
AT(stw_profile_op_info, name, 24);

SIZE(stw_buffer_info, 48);
AT(stw_buffer_info, struct_size, 0); AT(stw_buffer_info, persistent, 4); AT(stw_buffer_info, name, 8);
AT(stw_buffer_info, owner, 16); AT(stw_buffer_info, offset, 24); AT(stw_buffer_info, bytes, 32);
AT(stw_buffer_info, first, 40); AT(stw_buffer_info, last, 44);

SIZE(stw_buffer_lifetime, 24);
AT(stw_buffer_lifetime, lower, 0); AT(stw_buffer_lifetime, upper, 8); AT(stw_buffer_lifetime, size, 16);

SIZE(stw_buffer_gap, 32);
AT(stw_buffer_gap, lower, 0); AT(stw_buffer_gap, upper, 8); AT(stw_buffer_gap, first, 16); AT(stw_buffer_gap, end, 24);

SIZE(stw_buffer_constraint, 32);
AT(stw_buffer_constraint, alignment, 0); AT(stw_buffer_constraint, offset, 8); AT(stw_buffer_constraint, gaps, 16);
AT(stw_buffer_constraint, gap_count, 24); AT(stw_buffer_constraint, set_mask, 28);

SIZE(stw_pack_options, 32);
AT(stw_pack_options, struct_size, 0); AT(stw_pack_options, set_mask, 4); AT(stw_pack_options, capacity, 8);
AT(stw_pack_options, node_limit, 16); AT(stw_pack_options, constraints, 24);

SIZE(stw_pack_result, 32);
AT(stw_pack_result, struct_size, 0); AT(stw_pack_result, answer, 4); AT(stw_pack_result, height, 8);
AT(stw_pack_result, bound, 16); AT(stw_pack_result, nodes, 24);

SIZE(stw_dataset_options, 144);
AT(stw_dataset_options, struct_size, 0); AT(stw_dataset_options, tokenizer, 4); AT(stw_dataset_options, path, 8);
AT(stw_dataset_options, vocabulary, 16); AT(stw_dataset_options, sequence, 24); AT(stw_dataset_options, seed, 32);
AT(stw_dataset_options, set_mask, 40); AT(stw_dataset_options, pairs, 44); AT(stw_dataset_options, document_end, 48);
AT(stw_dataset_options, marks, 56); AT(stw_dataset_options, labels, 64); AT(stw_dataset_options, label_count, 72);
AT(stw_dataset_options, held_out, 80); AT(stw_dataset_options, reference, 88); AT(stw_dataset_options, mask_rate, 96);
AT(stw_dataset_options, mask_token, 104); AT(stw_dataset_options, token_kinds, 112); AT(stw_dataset_options, mask_whole_words, 120);
AT(stw_dataset_options, task, 124); AT(stw_dataset_options, in_order, 128); AT(stw_dataset_options, token_type, 132); AT(stw_dataset_options, watch, 136);

SIZE(stw_dataset_info, 48);
AT(stw_dataset_info, struct_size, 0); AT(stw_dataset_info, tokenizer, 4); AT(stw_dataset_info, training_tokens, 8);
AT(stw_dataset_info, evaluation_tokens, 16);
AT(stw_dataset_info, training_samples, 24); AT(stw_dataset_info, evaluation_samples, 32); AT(stw_dataset_info, content_hash, 40);

SIZE(stw_progress, 176);
AT(stw_progress, struct_size, 0); AT(stw_progress, phase, 4); AT(stw_progress, step, 8); AT(stw_progress, batches, 16);
AT(stw_progress, skipped, 24); AT(stw_progress, loss, 32); AT(stw_progress, grad_norm, 40);
AT(stw_progress, learning_rate, 48); AT(stw_progress, seconds, 56); AT(stw_progress, tokens_per_second, 64);
AT(stw_progress, tokens, 72); AT(stw_progress, evaluation_loss, 80);
AT(stw_progress, loss_scale, 88); AT(stw_progress, skip_reason, 96); AT(stw_progress, reserved, 100);
AT(stw_progress, evaluation_accuracy, 104); AT(stw_progress, accuracy, 112);
AT(stw_progress, evaluation_samples, 120); AT(stw_progress, evaluated_samples, 128); AT(stw_progress, evaluation_targets, 136);
AT(stw_progress, micro_steps, 144); AT(stw_progress, micro_steps_done, 152);
AT(stw_progress, sample_tokens, 160); AT(stw_progress, evaluation_tokens, 168);

SIZE(stw_gradients, 64);
AT(stw_gradients, struct_size, 0); AT(stw_gradients, reserved, 4); AT(stw_gradients, data, 8);
AT(stw_gradients, count, 16); AT(stw_gradients, loss_sum, 24); AT(stw_gradients, target_count, 32);
AT(stw_gradients, stream, 40); AT(stw_gradients, scale, 48); AT(stw_gradients, in_order, 56);

SIZE(stw_trainer_options, 128);
AT(stw_trainer_options, struct_size, 0); AT(stw_trainer_options, set_mask, 4); AT(stw_trainer_options, seed, 8);
AT(stw_trainer_options, beta1, 16); AT(stw_trainer_options, beta2, 20); AT(stw_trainer_options, epsilon, 24);
AT(stw_trainer_options, weight_decay, 28); AT(stw_trainer_options, clip_norm, 32);
AT(stw_trainer_options, nesterov, 36); AT(stw_trainer_options, arena, 40); AT(stw_trainer_options, arena_bytes, 48);
AT(stw_trainer_options, gradient_hook, 56); AT(stw_trainer_options, gradient_user, 64);
AT(stw_trainer_options, momentum, 72); AT(stw_trainer_options, label_smoothing, 76); AT(stw_trainer_options, z_loss, 80);
AT(stw_trainer_options, outlier_limit, 84); AT(stw_trainer_options, loss_scale, 88);
AT(stw_trainer_options, growth_interval, 96); AT(stw_trainer_options, non_finite, 100);
AT(stw_trainer_options, beta, 104); AT(stw_trainer_options, margin, 108); AT(stw_trainer_options, answer_share, 112);
AT(stw_trainer_options, reserved, 116); AT(stw_trainer_options, watch, 120);

SIZE(stw_batch, 32);
AT(stw_batch, struct_size, 0); AT(stw_batch, count, 4); AT(stw_batch, names, 8); AT(stw_batch, tensors, 16);
AT(stw_batch, learning_rate, 24);

SIZE(stw_step_result, 72);
AT(stw_step_result, struct_size, 0); AT(stw_step_result, skipped, 4); AT(stw_step_result, step, 8);
AT(stw_step_result, loss, 16); AT(stw_step_result, grad_norm, 24); AT(stw_step_result, targets, 32);
AT(stw_step_result, seconds, 40); AT(stw_step_result, loss_scale, 48);
AT(stw_step_result, skip_reason, 56); AT(stw_step_result, reserved, 60); AT(stw_step_result, accuracy, 64);

SIZE(stw_run_options, 88);
AT(stw_run_options, struct_size, 0); AT(stw_run_options, set_mask, 4); AT(stw_run_options, until, 8);
AT(stw_run_options, total, 16); AT(stw_run_options, warmup, 24); AT(stw_run_options, learning_rate, 32);
AT(stw_run_options, min_rate, 40); AT(stw_run_options, schedule, 48); AT(stw_run_options, progress_every, 52);
AT(stw_run_options, progress, 56); AT(stw_run_options, progress_user, 64);
AT(stw_run_options, decay_steps, 72); AT(stw_run_options, base_batch, 80);

SIZE(stw_generate_options, 88);
AT(stw_generate_options, struct_size, 0); AT(stw_generate_options, top_k, 4); AT(stw_generate_options, prompt, 8);
AT(stw_generate_options, prompt_count, 16); AT(stw_generate_options, out, 24);
AT(stw_generate_options, out_capacity, 32); AT(stw_generate_options, temperature, 40);
AT(stw_generate_options, seed, 48); AT(stw_generate_options, stop, 56); AT(stw_generate_options, stop_count, 64);
AT(stw_generate_options, top_p, 72); AT(stw_generate_options, set_mask, 80); AT(stw_generate_options, reserved, 84);

VALUE(STW_WORK_NONE, 0); VALUE(STW_WORK_PLAN, 1); VALUE(STW_WORK_OPEN_DATASET, 2); VALUE(STW_WORK_CREATE_TRAINER, 3);
VALUE(STW_WORK_STEP, 4); VALUE(STW_WORK_EVALUATE, 5); VALUE(STW_WORK_GENERATE, 6); VALUE(STW_WORK_CALIBRATE, 7);
VALUE(STW_WORK_SAVE, 8); VALUE(STW_WORK_RESTORE, 9); VALUE(STW_WORK_EXPORT, 10); VALUE(STW_UNIT_NONE, 0);
VALUE(STW_UNIT_BYTES, 1); VALUE(STW_UNIT_MICRO_STEPS, 2); VALUE(STW_UNIT_SAMPLES, 3); VALUE(STW_SET_INTERVAL, 1);
VALUE(STW_SET_MODEL_SEED, 2); VALUE(STW_SET_DATASET_SEED, 4); VALUE(STW_SET_TRAINER_SEED, 64); VALUE(STW_SET_GENERATE_SEED, 1);
VALUE(STW_OK, 0); VALUE(STW_BAD_ARGUMENT, 1000); VALUE(STW_BAD_STRUCT_SIZE, 1001); VALUE(STW_BAD_STATE, 1002);
VALUE(STW_UNSUPPORTED, 2000); VALUE(STW_UNSUPPORTED_FIELD, 2001); VALUE(STW_UNSUPPORTED_SHAPE, 2002);
VALUE(STW_OUT_OF_MEMORY, 3000); VALUE(STW_OVER_BUDGET, 3001); VALUE(STW_HOST_OUT_OF_MEMORY, 3002);
VALUE(STW_DEVICE_ERROR, 4000); VALUE(STW_DEVICE_LOST, 4001); VALUE(STW_IO_ERROR, 5000); VALUE(STW_CORRUPT, 5001);
VALUE(STW_CANCELLED, 6000); VALUE(STW_CALLBACK_FAILED, 6001); VALUE(STW_NUMERIC, 7000); VALUE(STW_NON_FINITE, 7001);
VALUE(STW_INTERNAL, 9000); VALUE(STW_BACKEND_AUTO, 0); VALUE(STW_BACKEND_CPU, 1); VALUE(STW_BACKEND_CUDA, 2);
VALUE(STW_LOG_ERROR, 1); VALUE(STW_LOG_WARNING, 2); VALUE(STW_LOG_INFO, 3); VALUE(STW_ISA_AUTO, 0);
VALUE(STW_ISA_SCALAR, 1); VALUE(STW_ISA_AVX2, 2); VALUE(STW_ISA_AVX512, 3); VALUE(STW_ISA_NEON, 4);
VALUE(STW_SET_DROPOUT, 1); VALUE(STW_PRECISION_DEFAULT, 0);
VALUE(STW_PRECISION_FP32, 1); VALUE(STW_PRECISION_BF16, 2); VALUE(STW_OPTIMIZER_ADAMW, 0);
VALUE(STW_PRECISION_FP16, 3); VALUE(STW_OPTIMIZER_SGD, 1); VALUE(STW_OPTIMIZER_LION, 2); VALUE(STW_OPTIMIZER_MUON, 3);
VALUE(STW_OPTIMIZER_ADAFACTOR, 4); VALUE(STW_SET_GROUP_FROZEN, 1); VALUE(STW_SET_GROUP_RATE, 2);
VALUE(STW_SET_GROUP_DECAY, 4); VALUE(STW_SET_GROUP_STATES, 8); VALUE(STW_SET_MOMENTUM, 16);
VALUE(STW_SKIP_NONE, 0); VALUE(STW_SKIP_NO_TARGET, 1); VALUE(STW_SKIP_NOT_FINITE, 2); VALUE(STW_SKIP_OUTLIER, 3);
VALUE(STW_NON_FINITE_SKIP, 0); VALUE(STW_NON_FINITE_STOP, 1); VALUE(STW_SCHEDULE_WSD, 3);
VALUE(STW_SCHEDULE_INVERSE_ROOT, 4); VALUE(STW_INPUT_POSITIONS, 1); VALUE(STW_INPUT_WEIGHTS, 2);
VALUE(STW_SET_DOCUMENT_END, 1); VALUE(STW_MASTER_EXACT, 0); VALUE(STW_MASTER_SPLIT8, 1);
VALUE(STW_MASTER_STOCHASTIC, 2); VALUE(STW_STATES_AUTO, 0);
VALUE(STW_STATES_32, 32); VALUE(STW_STATES_8, 8); VALUE(STW_RECOMPUTE_AUTO, 0); VALUE(STW_RECOMPUTE_NONE, 1);
VALUE(STW_RECOMPUTE_FULL, 2); VALUE(STW_QUANTIZE_AUTO, 0);
VALUE(STW_QUANTIZE_NONE, 1); VALUE(STW_QUANTIZE_NF4, 2); VALUE(STW_QUANTIZE_INT8, 3); VALUE(STW_MODE_EXACT, 0); VALUE(STW_MODE_FAST, 1); VALUE(STW_SET_RESERVE, 1);
VALUE(STW_TOKEN_TYPE_AUTO, 0); VALUE(STW_TOKEN_TYPE_UINT16, 1); VALUE(STW_TOKEN_TYPE_UINT32, 2); VALUE(STW_TOKEN_TYPE_INT32, 3);
VALUE(STW_TOKEN_TYPE_INT64, 4);
VALUE(STW_TOKENIZER_AUTO, 0); VALUE(STW_TOKENIZER_BYTE, 1); VALUE(STW_TOKENIZER_IDS, 2);
VALUE(STW_PHASE_IDLE, 0); VALUE(STW_PHASE_TRAIN, 1); VALUE(STW_PHASE_EVALUATE, 2); VALUE(STW_PHASE_GENERATE, 3);
VALUE(STW_PHASE_SAVE, 4); VALUE(STW_PHASE_CALIBRATE, 5); VALUE(STW_PROFILE_BYTES, 16384); VALUE(STW_SET_WEIGHT_DECAY, 1); VALUE(STW_SET_CLIP_NORM, 2); VALUE(STW_SET_BETA1, 4);
VALUE(STW_SET_BETA2, 8); VALUE(STW_SCHEDULE_COSINE, 0); VALUE(STW_SCHEDULE_LINEAR, 1); VALUE(STW_SCHEDULE_CONSTANT, 2);
VALUE(STW_SET_OFFSET, 1);
VALUE(STW_SET_MIN_RATE, 1); VALUE(STW_PACK_OPTIMAL, 0); VALUE(STW_PACK_FITS, 1); VALUE(STW_PACK_IMPOSSIBLE, 2);
VALUE(STW_PACK_UNKNOWN, 3); VALUE(STW_TENSOR_PARAMETER, 0); VALUE(STW_TENSOR_GRADIENT, 1);
VALUE(STW_PICTURE_SVG, 0); VALUE(STW_PICTURE_HTML, 1); VALUE(STW_PICTURE_CSV, 2);
VALUE(STW_SET_MIN_RATE, 1); VALUE(STW_TENSOR_PARAMETER, 0); VALUE(STW_TENSOR_GRADIENT, 1);
VALUE(STW_TENSOR_FIRST_MOMENT, 2); VALUE(STW_TENSOR_SECOND_MOMENT, 3);
VALUE(STW_ADAPTER_RANK_STABILISED, 1); VALUE(STW_GRADIENTS_FP32, 0); VALUE(STW_GRADIENTS_BF16, 1);
VALUE(STW_KERNELS_AUTO, 0); VALUE(STW_KERNELS_PORTABLE, 1); VALUE(STW_KERNELS_TENSOR, 2);
VALUE(STW_KERNELS_CUBLASLT, 3); VALUE(STW_KERNELS_WGMMA, 4); VALUE(STW_KERNELS_CUBLASLT_WGMMA, 5); VALUE(STW_ATTENTION_OWN, 0); VALUE(STW_ATTENTION_CUDNN, 1);
VALUE(STW_PREFERENCE_NONE, 0); VALUE(STW_PREFERENCE_DPO, 1); VALUE(STW_PREFERENCE_IPO, 2);
VALUE(STW_PREFERENCE_SIMPO, 3); VALUE(STW_PREFERENCE_ORPO, 4); VALUE(STW_SET_HELD_OUT, 2); VALUE(STW_MARK_TARGET, 1);
VALUE(STW_MARK_BEGIN, 2); VALUE(STW_MARK_SECOND, 4); VALUE(STW_SET_MARGIN, 32); VALUE(STW_TOKEN_SPECIAL, 1);
VALUE(STW_TOKEN_CONTINUES, 2); VALUE(STW_TASK_AUTOMATIC, 0); VALUE(STW_TASK_LANGUAGE_MODEL, 1); VALUE(STW_TASK_MASKED_LANGUAGE_MODEL, 2);
VALUE(STW_TASK_LABEL, 3); VALUE(STW_TASK_LABELS, 4); VALUE(STW_TASK_NUMBER, 5); VALUE(STW_TASK_TOKEN_LABEL, 6);
