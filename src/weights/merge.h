// A model whose adapters have become part of its weights.
#pragma once
#include "src/weights/model.h"

namespace stw {

// Writes config.json and model.safetensors; every tensor of the type that it has in the model's own files, fp32 where it comes from
// none, and rounded to nearest. W + scale·B·A is one chain of multiply-adds an element in fp32, from W over the rank. Of a model
// without adapters: the model as it is. Takes some MiB, and an adapter's two matrices in fp32. Errors: io_error, corrupt, bad_argument
// where that would replace what it reads, or lie beside adapters or shards. config.json comes last; where this fails, neither file is
// there that was not before.
// Checks in with the bytes of weights that are written.
Status write_merged(const Model& model, const std::string& folder);

// Bytes of weights that write_merged() writes.
uint64_t merged_bytes(const Model& model);

}  // namespace stw
