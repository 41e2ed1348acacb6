/* A host loads the library, uses it and unloads it, three times. Neither code nor threads remain. */
#define _GNU_SOURCE
#include "stowage.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* library;

static void* entry(const char* name) {
  void* found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}

static void must(stw_status status, const stw_error* error) {
  if (status == STW_OK) return;
  fprintf(stderr, "%d: %s\n", (int)status, error->message);
  exit(1);
}

/* Whether a line of a file in /proc contains the text. */
static int has_line(const char* path, const char* text) {
  char line[4096];
  int found = 0;
  FILE* file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) found |= strstr(line, text) != NULL;
  if (file) fclose(file);
  return found;
}

#define ENTRY(name) __typeof__(name)* const name##_ = (__typeof__(name)*)entry(#name)

static void use(void) {
  ENTRY(stw_device_open);
  ENTRY(stw_device_close);
  ENTRY(stw_model_create);
  ENTRY(stw_model_destroy);
  ENTRY(stw_plan_create);
  ENTRY(stw_plan_destroy);
  ENTRY(stw_trainer_create);
  ENTRY(stw_trainer_destroy);
  ENTRY(stw_trainer_generate);
  ENTRY(stw_watch_create);
  ENTRY(stw_watch_destroy);
  stw_error error = {.struct_size = sizeof error};
  stw_watch* watch = NULL;
  must(stw_watch_create_(&watch, NULL, &error), &error);
  stw_device_options of_device = {.struct_size = sizeof of_device, .backend = STW_BACKEND_CPU, .threads = 3};
  stw_device* device = NULL;
  must(stw_device_open_(&device, &of_device, &error), &error);
  stw_model_options of_model = {.struct_size = sizeof of_model, .source = "nano"};
  stw_model* model = NULL;
  must(stw_model_create_(&model, &of_model, &error), &error);
  stw_plan_options of_plan = {.struct_size = sizeof of_plan,
                              .global_batch = 2,
                              .sequence = 16,
                              .threads = 3,
                              .memory_bytes = 1 << 30,
                              .watch = watch};
  stw_plan* plan = NULL;
  must(stw_plan_create_(&plan, model, &of_plan, &error), &error);
  stw_trainer_options of_trainer = {.struct_size = sizeof of_trainer, .watch = watch};
  stw_trainer* trainer = NULL;
  must(stw_trainer_create_(&trainer, device, model, plan, &of_trainer, &error), &error);
  int32_t prompt = 1, out[8];
  stw_generate_options of_text = {
      .struct_size = sizeof of_text, .prompt = &prompt, .prompt_count = 1, .out = out, .out_capacity = 8};
  uint64_t count = 0;
  must(stw_trainer_generate_(trainer, &of_text, &count, &error), &error);
  if (count != 8) exit(1);
  stw_trainer_destroy_(trainer);
  stw_plan_destroy_(plan);
  stw_model_destroy_(model);
  stw_device_close_(device);
  stw_watch_destroy_(watch);
}

int main(int count, char** words) {
  if (count != 2) return 2;
  for (int round = 0; round < 3; ++round) {
    library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    use();
    if (!has_line("/proc/self/maps", "libstowage")) return 3; /* otherwise the check below could not fail */
    if (dlclose(library) != 0) return 1;
    if (has_line("/proc/self/maps", "libstowage")) {
      fprintf(stderr, "the library is still there\n");
      return 1;
    }
    if (!has_line("/proc/self/status", "Threads:\t1\n")) {
      fprintf(stderr, "a thread is left\n");
      return 1;
    }
    usleep(1000);
  }
  return 0;
}
