"""Plants typical mistakes of gradient accumulation, one at a time, in a copy of the sources. The tests
must find each.

usage: mutations.py [WORD...]  takes half an hour; prints a line for each mistake (with a WORD in its name),
                               and exits with 1 if one is not found or does not compile
       mutations.py --places   only checks that each mistake has its place in the sources

Every mistake compiles, trains, and shows a falling loss."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE_TESTS, API_TESTS, KERNEL_TESTS = "tests/src_tests", "tests/api/api_tests", "tests/kernel_tests"
EMULATED_TESTS, EMULATED_TRAINING = "tests/simt/simt_kernel_tests", "tests/simt/simt_trainer_tests"
COMPILED_TESTS = "tests/ptx/ptx_kernel_tests"  # if nvcc is installed

# Description of the mistake, file, original code, replacement, the program and the tests that must find it.
MUTATIONS = [
    (
        "the mean of the micro-batches' means",
        "kernels/cpu/loss/loss_sum.cpp",
        [
            (
                "  for (int64_t sample = 0;",
                "  uint64_t counted = 0;\n  double total = 0;\n  for (int64_t sample = 0;",
            ),
            ("args.state->target_count += ", "counted += "),
            (
                "    args.state->loss_sum += sum;\n  }\n",
                "    total += sum;\n  }\n  args.state->loss_sum += counted > 0 ? total / "
                "(double)counted : 0;\n"
                "  args.state->target_count += counted > 0;\n",
            ),
        ],
        SOURCE_TESTS,
        "Step.LossIsTheMeanOverTheTargetsOfTheGlobalBatch",
    ),
    (
        "labels counted before the shift",
        "src/data/batch.cpp",
        [
            ("shift_ == 0 ? i < end : goes_on;", "goes_on || i < end;"),
            (
                "is_of_target ? i + shift_ : i,",
                "is_of_target && i + shift_ < length(sample) ? i + shift_ : i,",
            ),
        ],
        API_TESTS,
        "*Labels*",
    ),
    (
        "a sample's label at its first token",
        "src/data/batch.cpp",
        [(": i + 1 == end;", ": i == 0;")],
        API_TESTS,
        "Classifier.LabelsOfSamples*",
    ),
    (
        "labels of tokens shifted as a language model's",
        "src/data/batch.cpp",
        [("task.has_labels_of_tokens() || task.hides_tokens ? 0 : 1", "task.hides_tokens ? 0 : 1")],
        API_TESTS,
        "TokenLabels.OfABatch*",
    ),
    (
        "a token's label one token late",
        "src/data/dataset.cpp",
        [
            (
                "read_around(range, start, static_cast<uint64_t>(in_window),",
                "read_around(range, start + 1, static_cast<uint64_t>(in_window),",
            )
        ],
        SOURCE_TESTS,
        "TokenLabels.Evaluation*",
    ),
    (
        "a document's label one document late",
        "src/data/dataset.cpp",
        [("range.number_in_file(document++), at_first", "range.number_in_file(++document), at_first")],
        SOURCE_TESTS,
        "Labels.StandAtTheEndOfTheirDocuments",
    ),
    (
        "labels of documents in another order than their texts",
        "src/data/dataset.h",
        [("return moved.empty() ? document : moved[document].number;", "return document;")],
        SOURCE_TESTS,
        "Labels.StayWithTheirDocumentsInFullSamples",
    ),
    (
        "the last text of a sample as long as it comes",
        "src/data/fill.cpp",
        [("> rest || documents + 1 == most)", "> rest)")],
        SOURCE_TESTS,
        "Fill.TakesWhatFits*",
    ),
    (
        "a chunk that a hole does not fill taken for zeros",
        "src/data/dataset.cpp",
        [("if (hole_end < begin + bytes)", "if (hole_end <= begin)")],
        SOURCE_TESTS,
        "Labels.HolesAreZeros",
    ),
    (
        "a sum over labels in place of their mean",
        "kernels/cpu/loss/value_loss.cpp",
        [("sum / (float)args.count * weight", "sum * weight")],
        SOURCE_TESTS,
        "Families/GoldenValues.*",
    ),
    (
        "an answer's two losses added up in place of their mean",
        "kernels/cpu/loss/span_loss.cpp",
        [("return loss * 0.5f * weight;", "return loss * weight;")],
        SOURCE_TESTS,
        "Families/GoldenSpans.*",
    ),
    (
        "a chunk of the loss that cuts a text",
        "planner/program/program.cpp",
        [("return graph.rows_of(graph.ops[head.first_op]);", "return frozen_chunk_unit;")],
        SOURCE_TESTS,
        "Models/SpanBits.*",
    ),
    (
        "values of the row before",
        "src/data/dataset.cpp",
        [(".data() + row * label_count_;", ".data() + (row > 0 ? row - 1 : 0) * label_count_;")],
        SOURCE_TESTS,
        "Values.EvaluationAgreesWithTheOutputsOfEveryDocument",
    ),
    (
        "an encoder's text that sees the next one",
        "src/execute/sample_inputs.cpp",
        [("|| positions[i + 1] == 0 ? 0", "? 0")],
        SOURCE_TESTS,
        "Encoder.ATextDoesNotDependOnOthers",
    ),
    (
        "a local layer that sees a token fewer to each side",
        "src/models/encoder/modernbert.cpp",
        [("local / 2 + 1", "local / 2")],
        SOURCE_TESTS,
        "Families/GoldenClassifier.*/encoder_modernbert*",
    ),
    (
        "a document's mean that is a sum",
        "kernels/cpu/embedding/document_mean.cpp",
        [("div(total[(i - begin) / 16], splat((float)count))", "total[(i - begin) / 16]")],
        KERNEL_TESTS,
        "DocumentMean.*",
    ),
    (
        "a row of a text from the row after it",
        "kernels/cpu/embedding/take_rows.cpp",
        [("max(0, (int64_t)args.places[row])", "max(0, (int64_t)args.places[row] + 1)")],
        KERNEL_TESTS,
        "TakeRows.*",
    ),
    (
        "targets of all rows taken for those of texts",
        "src/execute/sample_inputs.cpp",
        [
            (
                "of_rows_[k].data() + static_cast<size_t>(rows[text]) * bytes",
                "of_rows_[k].data() + text * bytes",
            )
        ],
        SOURCE_TESTS,
        "*TextRows*",
    ),
    (
        "a preference without its reference",
        "kernels/common/preference_pair.h",
        [
            (
                "(pair.policy[0] - pair.reference[0]) - (pair.policy[1] - pair.reference[1]);",
                "pair.policy[0] - pair.policy[1];",
            )
        ],
        SOURCE_TESTS,
        "Preferences.HaveTheGradient*",
    ),
    (
        "references at tokens instead of at their targets",
        "src/data/dataset.cpp",
        [("read_around(range, (start + 1) % range.count, length", "read_around(range, start, length")],
        SOURCE_TESTS,
        "References.HoldTheModels*",
    ),
    (
        "tokens of a pair that weigh what the first chunk's do",
        "planner/program/micro_builder.cpp",
        [
            (
                "emitter_.emit(logits, Phase::recompute, false, chunk.begin, chunk.rows);",
                "emitter_.emit(logits, Phase::recompute, false, 0, chunk.rows);",
            )
        ],
        SOURCE_TESTS,
        "Preferences.NoSplitChangesABit",
    ),
    (
        "a head that is not trained with the adapters",
        "planner/graph/adapters.cpp",
        [("t.trainable = t.of_adapters = is_trained", "t.of_adapters = is_trained")],
        SOURCE_TESTS,
        "Models/ClassifierFolder.AdaptersBringTheHead*",
    ),
    (
        "queries, keys and values written in the order of memory",
        "src/trainer/export.cpp",
        [("p.layout.in_graph(done,", "WeightLayout{}.in_graph(done,")],
        SOURCE_TESTS,
        "Layout.ExportsHaveTheFilesBytes",
    ),
    (
        "a factor of an adapter whose rows lie otherwise than its matrix's",
        "planner/graph/adapters.cpp",
        [("graph_.tensors[high_weights.back()].layout = graph_.at(weight).layout;", "")],
        SOURCE_TESTS,
        "Families/GoldenModel.*/adapter_bloom*",
    ),
    (
        "a division by the number of micro-steps",
        "src/trainer/step.cpp",
        [
            (
                "  STW_TRY(run_update(core));",
                "  STW_TRY(core.pull_state());\n"
                "  core.state.target_count *= (core.global_batch() + m - 1) / m;\n"
                "  core.push_state();\n  STW_TRY(run_update(core));",
            )
        ],
        SOURCE_TESTS,
        "Models/SameBits.MicroBatchRecomputeChunksAndThreads/llama_fp32*",
    ),
    (
        "the gradient of a parameter's third use left out",
        "kernels/cpu/update/gradient_sum.cpp",
        [("k < args.terms;", "k < args.terms && k < 2;")],
        SOURCE_TESTS,
        "ParameterUses.TheGradientIsTheSumOverAllUses",
    ),
    (
        "clipping before the gradients are normalised",
        "kernels/common/step_scalars.h",
        [
            (
                "state.max_norm / (state.grad_norm + 1e-6)",
                "state.max_norm / (state.grad_norm * scaled_targets + 1e-6)",
            )
        ],
        SOURCE_TESTS,
        "Step.Clip",
    ),
    (
        "only the last micro-step's gradients",
        "planner/plan/plan.cpp",
        [("i.accumulate |= i.phase == Phase::backward;", "i.accumulate |= false;")],
        SOURCE_TESTS,
        "Models/SameBits.MicroBatchRecomputeChunksAndThreads/llama_fp32*",
    ),
    (
        "the gradient of the last tile only",
        "planner/program/micro_builder.cpp",
        [("accumulate_ || tile.begin > 0", "accumulate_")],
        SOURCE_TESTS,
        "Models/Tiles.ChangeNoBit/llama",
    ),
    (
        "tiles of tokens that go on from sample to sample",
        "kernels/cpu/norm/norm_rows.h",
        [("min(row + token_tile, round_up(row + 1, rows_per_sample))", "row + token_tile")],
        SOURCE_TESTS,
        "Models/SameBits.MicroBatchRecomputeChunksAndThreads/qwen3_fp32*",
    ),
    (
        "a window that hides the token at its edge, backward",
        "kernels/cpu/attention/attention_gradient.cpp",
        [
            (
                "min(lanes, first_key(h.rule, row) - b.key)",
                "min(lanes, first_key(h.rule, row) + (h.rule.window > 0) - b.key)",
            )
        ],
        KERNEL_TESTS,
        "AttentionOfWindows.AgreesWithDoublePrecision",
    ),
    (
        "a window that is one key wider after a row than before it",
        "kernels/common/score_rule.h",
        [
            (
                "key + d.window < d.end ? key + d.window : d.end",
                "key + d.window < d.end ? key + d.window + 1 : d.end",
            )
        ],
        KERNEL_TESTS,
        "AttentionOfBothSides.AgreesWithDoublePrecision",
    ),
    (
        "keys that a tensor core's last queries in the window do not reach",
        "kernels/cuda/attention/tensor_attention_gradient.cu",
        [("end_of_others<of_keys>(rule, segment.end - 1)", "end_of_others<of_keys>(rule, segment.begin)")],
        EMULATED_TESTS,
        "TensorAttention.AgreesInsideOfWindows",
    ),
    (
        "gradients of keys without the queries before them",
        "kernels/common/score_rule.h",
        [("return d.causal ? key : first_key(d, key);", "return d.causal ? key : key;")],
        EMULATED_TESTS,
        "TensorAttention.AgreesOnBothSides",
    ),
    (
        "slopes of further heads that repeat the first ones'",
        "kernels/common/score_rule.h",
        [("2 * (head - m) + 1;", "2 * (head - m) + 2;")],
        KERNEL_TESTS,
        "Alibi.*",
    ),
    (
        "angles of full layers in those with a window",
        "src/models/decoder/gemma3.cpp",
        [("layer.window > 0 ? of_windowed_layers : of_full_layers", "of_full_layers")],
        SOURCE_TESTS,
        "Families/GoldenModel.*gemma3_text_fp32*",
    ),
    (
        "a norm's weight that counts from 0 in its gradient",
        "kernels/cpu/norm/norm_rows.h",
        [
            (
                "add(load_group(args.weight, args.weight_dtype, i, n), offset));",
                "load_group(args.weight, args.weight_dtype, i, n));",
            )
        ],
        KERNEL_TESTS,
        "NormGradient.AgreesWithFiniteDifferences",
    ),
    (
        "adapters of all parts except the first one",
        "kernels/cpu/product/adapter.cpp",
        [("row * args.width + p.column + feature", "row * args.width + feature")],
        KERNEL_TESTS,
        "Adapter.RandomShapes*",
    ),
    (
        "codes that take the scale of the first of a thread's groups",
        "kernels/cuda/product/dequantize.cu",
        [
            (
                "store_values(eight[k], begin",
                "store_values({{eight[k].word[0], eight[k].word[1]}, eight[0].scale}, begin",
            )
        ],
        EMULATED_TESTS,
        "Dequantize.*",
    ),
    (
        "values of a second matrix in the place of the first one's",
        "src/execute/coded_products.cpp",
        [
            (
                "  return at + round_up(static_cast<uint64_t>(features.count",
                "  return at + 0 * round_up(static_cast<uint64_t>(features.count",
            )
        ],
        SOURCE_TESTS,
        "Models/Quantized.TrainsAsOverWeightsThatAreRounded/llama_int8",
    ),
    (
        "pieces whose sums begin anew",
        "src/execute/coded_products.cpp",
        [("if (column > 0) one.addend", "if (column < 0) one.addend")],
        SOURCE_TESTS,
        "Models/Quantized.TrainsAsOverWeightsThatAreRounded/qwen3_600_tokens",
    ),
    (
        "columns of a gradient as if they were all there were",
        "kernels/cpu/product/linear_input_gradient.cpp",
        [("args.x_stride > 0 ? args.x_stride : inputs;", "inputs;")],
        SOURCE_TESTS,
        "Models/Quantized.TrainsAsOverWeightsThatAreRounded/llama_int8",
    ),
    (
        "an update after every micro-step",
        "src/trainer/step.cpp",
        [
            (
                "    STW_TRY(core.stream->run(core.execution, program));\n"
                "    core.progress.count_micro_step();\n",
                "    STW_TRY(core.stream->run(core.execution, program));\n"
                "    core.progress.count_micro_step();\n"
                "    if (first + m < core.global_batch()) STW_TRY(core.stream->run(core.execution, "
                "programs.update));\n",
            )
        ],
        SOURCE_TESTS,
        "Models/SameBits.MicroBatchRecomputeChunksAndThreads/llama_fp32*",
    ),
    (
        "a cancel in the middle of an update",
        "src/execute/execute.cpp",
        [("if (supervisor && is_final(program.instructions[k])) supervisor->commit();", "")],
        API_TESTS,
        "Watching.AnUpdateIsFinishedOrNotBegun",
    ),
    (
        "no zeros after the rows of a gradient",
        "kernels/cpu/loss/cross_entropy.cpp",
        [("    return clear(args.vocabulary);", "    return;")],
        KERNEL_TESTS,
        "CrossEntropy.RowsMayLieFurtherApart",
    ),
    (
        "an algorithm for every number of rows",
        "src/cuda/matmul.cpp",
        [("p.free == LibraryProduct::Free::m ? usual_rows : p.m", "p.m < usual_rows ? p.m : usual_rows")],
        EMULATED_TESTS,
        "TensorProduct.TheNumberOfRowsDoesNotChangeTheBits",
    ),
    (
        "an engine for every part",
        "src/cuda/cudnn_attention.cpp",
        [
            (
                "Plan::make(handle_, graph_of(f_, args, part, gradient), *engine, ",
                "Plan::best(handle_, graph_of(f_, args, part, gradient), ",
            )
        ],
        EMULATED_TESTS,
        "LibraryAttention.AgreesWithDoublePrecision",
    ),
    (
        "chains of tensor cores from the first row of a loss chunk on",
        "kernels/cuda/product/linear_products.h",
        [("  all.first = args.first_row;\n", "")],
        EMULATED_TESTS,
        "TensorProduct.CutsBetweenChainsGiveTheSameWeightGradients",
    ),
    (
        "chains of tensor cores as long as a sample",
        "kernels/cuda/product/tile_product.h",
        [
            (
                "slices_in<T>(min(in_use.end - in_use.at, static_cast<int>(all.chain)))",
                "slices_in<T>(in_use.end - in_use.at)",
            )
        ],
        EMULATED_TESTS,
        "EmulatedProducts.LongSumsStayAccurate",
    ),
    (
        "a tile in the place of the one that is forced",
        "kernels/cuda/product/tile_product.h",
        [("switches.tile >= 0 ? switches.tile : best", "best")],
        EMULATED_TESTS,
        "ProductTiles.UnsupportedOnesAreRefused",
    ),
    (
        "loss chunks that cut a chain",
        "planner/program/program.cpp",
        [("end -= end % rows_per_sample % unit;", "if (end % rows_per_sample > 0) end -= end % unit;")],
        SOURCE_TESTS,
        "Models/SameBits.MicroBatchRecomputeChunksAndThreads/llama_fp32*",
    ),
    (
        "chains that go on from sample to sample",
        "kernels/cpu/product/gemm.cpp",
        [
            (
                "if (chains.restart <= 0 || chains.restart % chain_terms == 0) return;",
                "if (chains.restart < INT64_MAX) return;",
            )
        ],
        KERNEL_TESTS,
        "Linear.RandomOddShapesHaveTheBitsOfNaiveChains",
    ),
    (
        "tiles that cut a chain",
        "planner/graph/feed_forward.cpp",
        [("? kernels::chain_terms : frozen_tile_unit;", "? frozen_tile_unit : frozen_tile_unit;")],
        SOURCE_TESTS,
        "Models/Tiles.ChangeNoBit/llama",
    ),
    (
        "a token's whole sum as one chain",
        "kernels/cpu/embedding/embedding_gradient.cpp",
        [("min(args.rows_per_sample, round_up(in_sample + 1, chain_terms))", "args.rows_per_sample")],
        KERNEL_TESTS,
        "EmbeddingGradient.SumsTheRowsOfEveryToken",
    ),
    (
        "sums of kept rows as a continuation of the head's gradient",
        "kernels/cpu/embedding/embedding_gradient.cpp",
        [("apart ? zero() : load_buffer(k)", "load_buffer(k)"), ("if (apart) total", "if (false) total")],
        KERNEL_TESTS,
        "KeptRowsGradient.AddsTheSumsOfEveryToken",
    ),
    (
        "a slice of a gradient formed on top of the last one",
        "kernels/cpu/embedding/embedding_gradient.cpp",
        [
            (
                "(uint64_t)(args.slice_tokens * args.features) * sizeof(float)});",
                "0 * (uint64_t)(args.slice_tokens * args.features) * sizeof(float)});",
            )
        ],
        KERNEL_TESTS,
        "KeptRowsGradient.FormsSlices",
    ),
    (
        "every slice of a gradient formed from the first tokens",
        "src/execute/execute.cpp",
        [("a.first_token = c.i.first_element / a.features", "a.first_token = 0")],
        SOURCE_TESTS,
        "Models/KeptRows.TrainTheSameBits/llama*",
    ),
    (
        "the squares of the last slice alone in the norm",
        "src/execute/execute.cpp",
        [("one.i.first_element > 0}", "false}")],
        SOURCE_TESTS,
        "Models/KeptRows.TrainTheSameBits/llama*",
    ),
    (
        "slices of a gradient that cut chunks of squares",
        "planner/graph/kept_rows.cpp",
        [("std::lcm(gradient.shape.last(), kernels::square_chunk)", "gradient.shape.last()")],
        SOURCE_TESTS,
        "Models/KeptRows.TrainTheSameBits/llama*",
    ),
    (
        "kept rows of a micro-batch in the place of the first one's",
        "kernels/cpu/embedding/keep_rows.cpp",
        [("(args.state->first_sample - args.first_sample)", "(0 * args.state->first_sample)")],
        SOURCE_TESTS,
        "Models/KeptRows.TrainTheSameBits/qwen2*",
    ),
    (
        "an op that overwrites what a weight gradient on the branch still reads",
        "src/cuda/branch.cpp",
        [("overlap(mine.writes, r.accesses.reads) || ", "")],
        EMULATED_TRAINING,
        "*WeightGradientBranch*",
    ),
    (
        "a busy device that counts as a lack of memory",
        "src/cuda/device.cpp",
        [("return status == cudaErrorMemoryAllocation ? 0 : static_cast<int32_t>(status);", "return 0;")],
        EMULATED_TRAINING,
        "CudaDeviceTest.ADeviceThatFailsIsNotShortOfMemory",
    ),
    (
        "uploads that wait for the device",
        "src/cuda/staging.h",
        [("slots = 16;", "slots = 4;")],
        EMULATED_TRAINING,
        "CudaDeviceTest.UploadsDoNotWaitForTheDevice",
    ),
    (
        "an upload's wait that no cancel ends",
        "src/cuda/staging.cpp",
        [("supervisor && !supervisor->is_committed() ? wait_for(event) :", "")],
        EMULATED_TRAINING,
        "CudaDeviceTest.UploadsDoNotWaitForTheDevice",
    ),
    (
        "tensors of another decay in one launch",
        "kernels/cuda/update/update_batch.h",
        [(" && a.decay == b.decay", "")],
        EMULATED_TESTS,
        "Together.UpdatesHaveTheBitsOfSeparateCalls",
    ),
    (
        "scratch memory without a product's tile",
        "kernels/contract/cpu_workspace.h",
        [("(rows + panel_columns) * depth + rows * columns", "(rows + panel_columns) * depth")],
        KERNEL_TESTS,
        "Workspace.*",
    ),
    (
        "a product that is not rounded before its residual",
        "kernels/cuda/product/chain_product.h",
        [("before.f[j] + as_stored(all.c, y.f[j])", "before.f[j] + y.f[j]")],
        EMULATED_TESTS,
        "Linear.RandomOddShapesHaveTheBitsOfNaiveChains",
    ),
    (
        "gradients that overwrite terms that are still to be summed",
        "kernels/cuda/norm/qk_norm_gradient.cu",
        [("      __syncthreads();   // All threads have read dy.\n", "")],
        EMULATED_TESTS,
        "QkNormGradient.*",
    ),
    (
        "registers of a PTX instruction in the wrong order",
        "kernels/lanes/device.h",
        [
            (
                '{%8,%9}, {%0,%1,%2,%3};"\n                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), '
                '"+f"(d[3])\n'
                '                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), '
                '"r"(b[1]));\n  else',
                '{%9,%8}, {%0,%1,%2,%3};"\n                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), '
                '"+f"(d[3])\n'
                '                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), '
                '"r"(b[1]));\n  else',
            )
        ],
        COMPILED_TESTS,
        "TensorProduct.*",
    ),
    (
        "copies without a fence before the products of a warpgroup",
        "kernels/cuda/product/tile_product.h",
        [("if (all.fence) Multiply::fence_copies();", "{}")],
        EMULATED_TESTS,
        "TensorProduct.WholeTilesStayCloseToDoublePrecision",
    ),
    (
        "threads that copy data past the lines of a slice",
        "kernels/cuda/product/tile_product.h",
        [("      if (static_cast<int>(threadIdx.x) >= threads) return;\n", "      {}\n")],
        EMULATED_TESTS,
        "EmulatedProducts.HaveTheBitsOfSteps",
    ),
    (
        "copies into what a warpgroup's products still read",
        "kernels/cuda/product/tile_product.h",
        [("Multiply::template finish<1>();", "Multiply::template finish<2>();")],
        EMULATED_TESTS,
        "TensorProduct.WholeTilesStayCloseToDoublePrecision",
    ),
    (
        "copies into what the products of the second warpgroup still read",
        "kernels/cuda/product/warpgroup_product_tiles.h",
        [("slices - (staggered ? 3 : 2)", "slices - 2")],
        EMULATED_TESTS,
        "ProductTiles.AllGiveTheSameBits",
    ),
]


def run(*words, cwd, **more):
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **more,
    )


def build(folder, target):
    """Returns the end of the compiler's output if the target cannot be built."""
    result = run("ninja", "-C", folder / "build", target, cwd=folder)
    return result.stdout[-4000:] if result.returncode != 0 else None


def must_build(folder, target):
    if output := build(folder, target):
        sys.exit(f"{target} was not built:\n{output}")


def passed(folder, program, tests):
    """Whether the tests pass. At least one test must run."""
    result = run(folder / "build" / program, f"--gtest_filter={tests}", cwd=folder)
    count = re.search(r"Running (\d+) tests? from", result.stdout)
    if not count or count[1] == "0":
        sys.exit(f"{program}: no test is named {tests}")
    return result.returncode == 0


def place(old):
    """A pattern that finds the code, however the formatter breaks its lines and string literals."""
    return re.compile(r'(?:"\s*"|\s)*'.join(map(re.escape, re.findall(r"\w+|\S", old))))


def check_places():
    for what, path, changes, *_ in MUTATIONS:
        for old, _ in changes:
            count = len(place(old).findall((ROOT / path).read_text()))
            if count != 1:
                sys.exit(f"{what}: {path}: expected once, found {count} times: {old}")
    print(f"{len(MUTATIONS)} mistakes have their places")


def main():
    check_places()
    if sys.argv[1:] == ["--places"]:
        return
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "stowage"
        for path in run("git", "ls-files", cwd=ROOT).stdout.splitlines():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, folder / path)
        # Lets ccache reuse the results of another folder.
        os.environ.update(CXX="ccache g++", CC="ccache gcc", CCACHE_BASEDIR=str(folder), CCACHE_NOHASHDIR="1")
        setup = run(
            "meson",
            "setup",
            "build",
            "-Dbuildtype=release",
            "-Db_ndebug=false",
            "-Dtools=false",
            "-Dunity=on",
            "-Dunity_size=8",
            "-Dgpu_architectures=90-virtual",
            "-Dquick_kernels=true",
            cwd=folder,
        )
        if setup.returncode != 0:
            sys.exit(setup.stdout)
        words = sys.argv[1:]
        planted = [row for row in MUTATIONS if not words or any(word in row[0] for word in words)]
        if f"build {COMPILED_TESTS}:" not in (folder / "build/build.ninja").read_text():
            print("no nvcc: what it compiles is not tried")
            planted = [row for row in planted if row[3] != COMPILED_TESTS]
        for target in sorted({program for *_, program, _ in planted}):
            must_build(folder, target)
        for what, path, changes, program, tests in planted:
            if not passed(folder, program, tests):
                sys.exit(f"{tests} fails without a mistake")
            original = (folder / path).read_text()
            text = original
            for old, new in changes:
                text = place(old).sub(lambda _, new=new: new, text)
            (folder / path).write_text(text)
            error = build(folder, program)
            found = not error and not passed(folder, program, tests)
            missed += not found
            outcome = "found " if found else "MISSED" if not error else "ERROR "
            print(f"{outcome}  {what}  ({path}; {tests})\n{error or ''}".rstrip(), flush=True)
            (folder / path).write_text(original)
            must_build(folder, program)
    print(f"{len(planted) - missed} of {len(planted)} mistakes found")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
