/* Trains a model within a number of bytes, in C99.
 *
 *   train TEXT [MODEL [STEPS [FOLDER]]]
 *
 * plans how to train MODEL (a preset, a config.json or a folder; default "nano") on the bytes of the file
 * TEXT within one GiB, shows the plan, trains, evaluates, and writes a checkpoint and a model that
 * transformers can load into FOLDER.
 *
 *   cc train.c $(pkg-config --cflags --libs stowage)
 */
#include <stdio.h>
#include <stdlib.h>

#include "stowage.h"

/* An entry returns 0 or a code. If it has an error argument, the error holds the message. */
#define TRY(call)                                 \
  do {                                            \
    if ((status = (call)) != STW_OK) goto failed; \
  } while (0)

/* Called after every step. A result other than 0 would stop the run. */
static int32_t show(void* user, const stw_progress* now) {
  (void)user;
  printf("step %3lu  loss %.4f  gradient norm %.3f  %.0f tokens/s\n", (unsigned long)now->step, now->loss,
         now->grad_norm, now->tokens_per_second);
  return 0;
}

int main(int argc, char** argv) {
  const char* folder = argc > 4 ? argv[4] : ".";
  stw_device* device = NULL;
  stw_model* model = NULL;
  stw_plan* plan = NULL;
  stw_dataset* dataset = NULL;
  stw_trainer* trainer = NULL;
  /* Every struct states its size. All other fields are zero, which means defaults. */
  stw_model_options of_model = STW_INIT(stw_model_options);
  stw_plan_options of_plan = STW_INIT(stw_plan_options);
  stw_dataset_options of_data = STW_INIT(stw_dataset_options);
  stw_run_options of_run = STW_INIT(stw_run_options);
  stw_device_info about = STW_INIT(stw_device_info);
  stw_model_info info = STW_INIT(stw_model_info);
  stw_error error = STW_INIT(stw_error);
  double loss;
  char checkpoint[4096];
  stw_status status;
  int result = 1;
  if (argc < 2) {
    fprintf(stderr, "usage: train TEXT [MODEL [STEPS [FOLDER]]]\n");
    return 2;
  }

  TRY(stw_device_open(&device, NULL, &error)); /* a GPU if there is one, else the CPU */
  TRY(stw_device_query(device, &about));
  of_model.source = argc > 2 ? argv[2] : "nano";
  TRY(stw_model_create(&model, &of_model, &error));
  TRY(stw_model_query(model, &info));

  /* The plan gives every buffer its place before anything is allocated. If the plan does not fit, its report
   * says why. */
  of_plan.device = about.profile;
  of_plan.memory_bytes = (uint64_t)1 << 30;
  of_plan.global_batch = 8;
  of_plan.sequence = 64;
  status = stw_plan_create(&plan, model, &of_plan, &error);
  if (status == STW_OVER_BUDGET) fputs(stw_plan_report(plan), stderr);
  if (status != STW_OK) goto failed;
  fputs(stw_plan_report(plan), stdout);

  of_data.path = argv[1];
  of_data.vocabulary = info.vocabulary;
  of_data.sequence = of_plan.sequence;
  TRY(stw_dataset_open(&dataset, &of_data, &error));

  /* Allocates exactly the plan's arena. The run allocates nothing else. */
  TRY(stw_trainer_create(&trainer, device, model, plan, NULL, &error));
  of_run.until = argc > 3 ? strtoul(argv[3], NULL, 10) : 100;
  of_run.learning_rate = 1e-3;
  of_run.progress = show;
  TRY(stw_trainer_run(trainer, dataset, &of_run, &error));
  TRY(stw_trainer_evaluate(trainer, dataset, 4, &loss, &error));
  printf("evaluation loss %.4f\n", loss);

  snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.stw", folder);
  TRY(stw_trainer_save(trainer, checkpoint, &error));
  TRY(stw_trainer_export_model(trainer, folder, &error));
  result = 0;

failed:
  if (result) fprintf(stderr, "train: %s: %s\n", stw_status_name(status), error.message);
  stw_trainer_destroy(trainer);
  stw_dataset_close(dataset);
  stw_plan_destroy(plan);
  stw_model_destroy(model);
  stw_device_close(device);
  return result;
}
