/* A host's thread in C, which may be unwound through an entry of the library. */
#include "stowage.h"

struct run_in_c {
  stw_trainer* trainer;
  stw_dataset* dataset;
  const stw_run_options* options;
};

void* stw_test_run_in_c(void* run) {
  const struct run_in_c* all = run;
  stw_trainer_run(all->trainer, all->dataset, all->options, NULL);
  return NULL;
}
