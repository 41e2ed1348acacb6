// The options that decide a run's bits by its plan, each with its field in the plan's "numerics" and in a checkpoint. A run that goes on
// keeps what it has of them (resume.cpp), and `train --plan` excludes them, since the plan has its own (train_flags.cpp).
#pragma once

namespace command {

struct NumericsFlag { const char *name, *field; };
constexpr NumericsFlag numerics_flags[] = {
    {"precision", "precision"}, {"master", "master"}, {"gradients", "gradients"}, {"fused-update", "fused_update"}, {"optimizer", "optimizer"}, {"states", "state_bits"},
    {"fast", "exact"}, {"kernels", "kernels"}, {"attention", "attention"}, {"quantize", "quantize"}, {"quantize-embeddings", "quantize_embeddings"},
    {"freeze", "groups"}, {"group", "groups"}};

}  // namespace command
