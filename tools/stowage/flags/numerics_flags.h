// The options that affect the trained bits through the plan, and for each its field in the "numerics" of a
// plan and of a checkpoint. A resumed run keeps their values (resume.cpp). `train --plan` excludes them,
// because the plan has its own values (train_flags.cpp).
#pragma once

namespace command {

struct NumericsFlag {
  const char *name, *field;
};
constexpr NumericsFlag numerics_flags[] = {{"precision", "precision"},
                                           {"master", "master"},
                                           {"gradients", "gradients"},
                                           {"fused-update", "fused_update"},
                                           {"optimizer", "optimizer"},
                                           {"states", "state_bits"},
                                           {"fast", "exact"},
                                           {"kernels", "kernels"},
                                           {"attention", "attention"},
                                           {"quantize", "quantize"},
                                           {"quantize-embeddings", "quantize_embeddings"},
                                           {"freeze", "groups"},
                                           {"group", "groups"}};

}  // namespace command
