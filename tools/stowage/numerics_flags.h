// Options that decide how a plan computes: what a run has of them it keeps, a plan from a file has its own, and a checkpoint knows them
// by the fields that a plan's "numerics" has, too.
#pragma once

namespace command {

struct NumericsFlag { const char *name, *field; };
constexpr NumericsFlag numerics_flags[] = {
    {"precision", "precision"}, {"master", "master"}, {"gradients", "gradients"}, {"fused-update", "fused_update"}, {"optimizer", "optimizer"}, {"states", "state_bits"},
    {"fast", "exact"}, {"kernels", "kernels"}, {"attention", "attention"}, {"quantize", "quantize"}, {"quantize-embeddings", "quantize_embeddings"},
    {"freeze", "groups"}, {"group", "groups"}};

}  // namespace command
