// Merges adapters into a model's weights.
#pragma once
#include "src/weights/model.h"

namespace stw {

// Writes config.json and model.safetensors. Every tensor has the type of the model's own files, or fp32 where
// it comes from no file, rounded to nearest. Each element of W + scale·B·A is one chain of fp32 multiply-adds
// that starts with W and runs over the rank. A model without adapters is written unchanged. The call needs
// some MiB of memory, and room for one adapter's two matrices in fp32. Errors: io_error; corrupt;
// bad_argument where the output would replace its input, or lie next to adapters or shards. config.json is
// written last. After an error neither file is there unless it was before. Reports the bytes of weights that
// it has written to check_in().
Status write_merged(const Model& model, const std::string& folder);

// Bytes of weights that write_merged() writes.
uint64_t merged_bytes(const Model& model);

}  // namespace stw
