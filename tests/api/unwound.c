/* A host's thread in C, which may be unwound through an entry of the library. */
#include <string.h>

#include "stowage.h"

struct call_in_c {
  const char* name; /* "step" for stw_trainer_step, ... */
  stw_trainer* trainer;
  stw_dataset* dataset;
  const stw_batch* batch;
  const stw_run_options* options;
  const char* path;
};

void* stw_test_call_in_c(void* made) {
  const struct call_in_c* c = made;
  double loss;
  char profile[STW_PROFILE_BYTES];
  size_t size;
  uint64_t count;
  int32_t prompt[] = {1, 2}, out[4];
  stw_generate_options generation = {0};
  generation.struct_size = sizeof generation;
  generation.prompt = prompt;
  generation.prompt_count = 2;
  generation.out = out;
  generation.out_capacity = 4;
  if (!strcmp(c->name, "run")) stw_trainer_run(c->trainer, c->dataset, c->options, NULL);
  if (!strcmp(c->name, "step")) stw_trainer_step(c->trainer, c->batch, NULL);
  if (!strcmp(c->name, "evaluate")) stw_trainer_evaluate(c->trainer, c->dataset, 4, &loss, NULL);
  if (!strcmp(c->name, "generate")) stw_trainer_generate(c->trainer, &generation, &count, NULL);
  if (!strcmp(c->name, "calibrate")) stw_trainer_calibrate(c->trainer, profile, sizeof profile, &size, NULL);
  if (!strcmp(c->name, "timeline")) stw_trainer_timeline(c->trainer, c->path, NULL);
  if (!strcmp(c->name, "save")) stw_trainer_save(c->trainer, c->path, NULL);
  if (!strcmp(c->name, "restore")) stw_trainer_restore(c->trainer, c->path, NULL);
  if (!strcmp(c->name, "export_model")) stw_trainer_export_model(c->trainer, c->path, NULL);
  if (!strcmp(c->name, "replan")) stw_trainer_replan(c->trainer, 0, NULL, NULL);
  return NULL;
}
