/* Trains small models for a few steps, and compares every byte of the results and of their losses with frozen
 * digests. Compilers, C libraries, instruction sets and processors must not change them (contract E4). If a
 * kernel changes bits on purpose, the test prints the new digests; put them below and say in NEWS.md that
 * bits have changed.
 *
 * Uses only the C API, so that it also runs cross-compiled under an emulator: tests/bits/aarch64.ini. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stowage.h"

#define INIT(options) (memset(&(options), 0, sizeof(options)), (options).struct_size = sizeof(options))
#define TRY(call)                      \
  do {                                 \
    if ((call) != STW_OK) goto failed; \
  } while (0)

static const char gpt2[] =
    "{\"model_type\":\"gpt2\",\"vocab_size\":256,\"n_positions\":64,\"n_embd\":72,\"n_layer\":2,\"n_head\":6,"
    "\"embd_pdrop\":0.1,\"attn_pdrop\":0.1,\"resid_pdrop\":0.1}";
static const char llama[] =
    "{\"model_type\":\"llama\",\"vocab_size\":256,\"hidden_size\":64,\"intermediate_size\":100,\"num_hidden_"
    "layers\":2,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"max_position_embeddings\":256,\"rms_norm_eps\":1e-"
    "5,"
    "\"rope_theta\":500000.0,\"tie_word_embeddings\":false,\"rope_scaling\":{\"rope_type\":\"llama3\","
    "\"factor\":8.0,"
    "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":32}}";
static const char qwen2[] =
    "{\"model_type\":\"qwen2\",\"vocab_size\":261,\"hidden_size\":80,\"intermediate_size\":96,\"num_hidden_"
    "layers\":2,"
    "\"num_attention_heads\":5,\"num_key_value_heads\":1,\"max_position_embeddings\":64,\"rms_norm_eps\":1e-"
    "6,"
    "\"rope_theta\":10000.0,\"tie_word_embeddings\":true}";
static const char qwen3[] =
    "{\"model_type\":\"qwen3\",\"vocab_size\":256,\"hidden_size\":72,\"intermediate_size\":100,\"num_hidden_"
    "layers\":2,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":26,\"max_position_embeddings\":64,"
    "\"rms_norm_eps\":1e-6,"
    "\"rope_theta\":1000000.0,\"tie_word_embeddings\":false}";
static const char phi3[] =
    "{\"model_type\":\"phi3\",\"vocab_size\":256,\"hidden_size\":80,\"intermediate_size\":100,\"num_hidden_"
    "layers\":2,"
    "\"num_attention_heads\":5,\"num_key_value_heads\":1,\"max_position_embeddings\":128,\"original_max_"
    "position_embeddings\":16,"
    "\"partial_rotary_factor\":0.5,\"sliding_window\":9,\"attention_dropout\":0.1,\"resid_pdrop\":0.1,\"tie_"
    "word_embeddings\":false,\"rope_scaling\":"
    "{\"type\":\"longrope\",\"short_factor\":[1,1.1,1.2,1.3],\"long_factor\":[1,2,3.5,6]}}";
static const char gemma3[] =
    "{\"model_type\":\"gemma3_text\",\"vocab_size\":256,\"hidden_size\":72,\"intermediate_size\":100,\"num_"
    "hidden_layers\":3,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":26,\"max_position_embeddings\":64,"
    "\"query_pre_attn_scalar\":20,"
    "\"sliding_window\":11,\"sliding_window_pattern\":3}";

static const struct {
  const char *name, *config;
  uint64_t digest;
  uint32_t precision, state_bits, optimizer, document_end; /* document_end 0: no documents */
  uint32_t master, gradients, fused_update, adapter_rank, quantize, quantize_embeddings, preference;
} cases[] = {
    {"gpt2 fp32, 32-bit states", gpt2, 0xf1b794ec9a1ad80fu, STW_PRECISION_FP32, STW_STATES_32,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 0, 0, 0, 0},
    {"gpt2 bf16, 8-bit states", gpt2, 0x46f6a1a4619b6d78u, STW_PRECISION_BF16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 0, 0, 0, 0},
    {"llama fp32, 8-bit states", llama, 0xbd09269182754e3fu, STW_PRECISION_FP32, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 0, 0, 0, 0},
    {"qwen2 bf16, 32-bit states", qwen2, 0x29071c64551e95b8u, STW_PRECISION_BF16, STW_STATES_32,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 0, 0, 0, 0},
    {"gpt2 fp16, 8-bit states", gpt2, 0x2e903a95c4b52560u, STW_PRECISION_FP16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 0, 0, 0, 0},
    {"gpt2 bf16, SGD, documents", gpt2, 0x2c9c0a19358221a9u, STW_PRECISION_BF16, STW_STATES_32,
     STW_OPTIMIZER_SGD, 64, 0, 0, 0, 0, 0, 0, 0},
    {"llama fp16, Lion, 8-bit states", llama, 0x029291b396f22cb7u, STW_PRECISION_FP16, STW_STATES_8,
     STW_OPTIMIZER_LION, 0, 0, 0, 0, 0, 0, 0, 0},
    {"llama fp32, Muon", llama, 0x7bf8daab1c245a76u, STW_PRECISION_FP32, STW_STATES_32, STW_OPTIMIZER_MUON, 0,
     0, 0, 0, 0, 0, 0, 0},
    {"qwen2 fp32, Adafactor, documents", qwen2, 0x084a5443c8e0c976u, STW_PRECISION_FP32, STW_STATES_32,
     STW_OPTIMIZER_ADAFACTOR, 64, 0, 0, 0, 0, 0, 0, 0},
    {"llama bf16, 7 bytes a parameter", llama, 0x275938cbaee342b0u, STW_PRECISION_BF16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, STW_MASTER_SPLIT8, STW_GRADIENTS_BF16, 0, 0, 0, 0, 0},
    {"gpt2 bf16, 4 bytes a parameter", gpt2, 0xf6525c083cf714afu, STW_PRECISION_BF16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, STW_MASTER_STOCHASTIC, 0, 1, 0, 0, 0, 0},
    {"qwen3 bf16, 8-bit states", qwen3, 0xab2069df7f5a736du, STW_PRECISION_BF16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 0, 0, 0, 0},
    {"llama bf16, adapters, 8-bit states", llama, 0xc8ba612a91463dc7u, STW_PRECISION_BF16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 12, 0, 0, 0},
    {"gpt2 fp32, adapters, documents", gpt2, 0x939959eb05754eeeu, STW_PRECISION_FP32, STW_STATES_32,
     STW_OPTIMIZER_ADAMW, 64, 0, 0, 0, 5, 0, 0, 0},
    {"llama bf16, adapters over nf4", llama, 0x5d345cd161b93082u, STW_PRECISION_BF16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 12, STW_QUANTIZE_NF4, 0, 0},
    {"gpt2 fp32, adapters over int8", gpt2, 0xd5e5bee771ab2ca6u, STW_PRECISION_FP32, STW_STATES_32,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 5, STW_QUANTIZE_INT8, 0, 0},
    {"qwen3 bf16, adapters over nf4 and int8", qwen3, 0x23cd72a06454e0bau, STW_PRECISION_BF16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 12, STW_QUANTIZE_NF4, STW_QUANTIZE_INT8, 0},
    {"phi3 fp32, documents", phi3, 0x6466d991d7fe11d4u, STW_PRECISION_FP32, STW_STATES_32,
     STW_OPTIMIZER_ADAMW, 64, 0, 0, 0, 0, 0, 0, 0},
    {"gemma3 bf16, 8-bit states", gemma3, 0xef119775027c5299u, STW_PRECISION_BF16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 0, 0, 0, 0},
    {"gemma3 fp16, Muon", gemma3, 0x2fc1aff5352b593du, STW_PRECISION_FP16, STW_STATES_32, STW_OPTIMIZER_MUON,
     0, 0, 0, 0, 0, 0, 0, 0},
    {"llama bf16, DPO, adapters over int8", llama, 0xe504a00b6f05dc8au, STW_PRECISION_BF16, STW_STATES_8,
     STW_OPTIMIZER_ADAMW, 0, 0, 0, 0, 12, STW_QUANTIZE_INT8, 0, STW_PREFERENCE_DPO},
    {"qwen3 fp32, ORPO", qwen3, 0x45e187dadaf56d78u, STW_PRECISION_FP32, STW_STATES_32, STW_OPTIMIZER_ADAMW,
     0, 0, 0, 0, 0, 0, 0, STW_PREFERENCE_ORPO},
    {"gpt2 fp16, SimPO", gpt2, 0x0086611d2494589cu, STW_PRECISION_FP16, STW_STATES_8, STW_OPTIMIZER_LION, 0,
     0, 0, 0, 0, 0, 0, STW_PREFERENCE_SIMPO},
    {"gemma3 bf16, IPO", gemma3, 0xdf2bb7ef524e1859u, STW_PRECISION_BF16, STW_STATES_32, STW_OPTIMIZER_ADAMW,
     0, 0, 0, 0, 0, 0, 0, STW_PREFERENCE_IPO},
};

/* FNV-1a. */
static uint64_t add(uint64_t digest, const void* data, size_t bytes) {
  const unsigned char* at = (const unsigned char*)data;
  while (bytes--) digest = (digest ^ *at++) * 1099511628211u;
  return digest;
}

static int32_t add_progress(void* user, const stw_progress* now) {
  uint64_t* digest = (uint64_t*)user;
  *digest = add(*digest, &now->loss, sizeof now->loss);
  *digest = add(*digest, &now->grad_norm, sizeof now->grad_norm);
  return 0;
}

static int add_file(uint64_t* digest, const char* path) {
  static unsigned char buffer[1 << 16];
  size_t n;
  FILE* file = fopen(path, "rb");
  if (!file) return 1;
  while ((n = fread(buffer, 1, sizeof buffer, file)) > 0) *digest = add(*digest, buffer, n);
  return fclose(file);
}

static int train(const char* folder, size_t which, uint64_t* digest) {
  stw_device* device = NULL;
  stw_model* model = NULL;
  stw_plan* plan = NULL;
  stw_dataset* dataset = NULL;
  stw_trainer* trainer = NULL;
  stw_model_options of_model;
  stw_plan_options of_plan;
  stw_dataset_options of_data;
  stw_run_options of_run;
  stw_trainer_options of_training;
  stw_generate_options of_generation;
  stw_error error;
  double loss;
  char path[4096], marks[4096], reference[4096];
  int result = 1;
  int32_t prompt[3] = {65, 66, 67}, tokens[8];
  uint64_t count = 0;
  INIT(of_model);
  INIT(of_plan);
  INIT(of_data);
  INIT(of_run);
  INIT(of_training);
  INIT(of_generation);
  INIT(error);

  TRY(stw_device_open(&device, NULL, &error));
  of_model.config_json = cases[which].config;
  of_model.config_json_size = strlen(cases[which].config);
  of_model.adapter_rank = cases[which].adapter_rank;
  if (of_model.adapter_rank) of_model.adapter_dropout = 0.1f;
  TRY(stw_model_create(&model, &of_model, &error));
  of_plan.memory_bytes = (uint64_t)1 << 28;
  of_plan.global_batch = 3;
  of_plan.micro_batch = cases[which].fused_update ? of_plan.global_batch : 2;
  of_plan.sequence = 41;
  of_plan.threads = 2;
  of_plan.precision = cases[which].precision;
  of_plan.state_bits = cases[which].state_bits;
  of_plan.optimizer = cases[which].optimizer;
  of_plan.master = cases[which].master;
  of_plan.gradients = cases[which].gradients;
  of_plan.fused_update = cases[which].fused_update;
  of_plan.quantize = cases[which].quantize;
  of_plan.quantize_embeddings = cases[which].quantize_embeddings;
  if (cases[which].document_end) {
    of_plan.inputs = STW_INPUT_POSITIONS;
    of_data.set_mask = STW_SET_DOCUMENT_END;
    of_data.document_end = cases[which].document_end;
    of_training.label_smoothing = 0.1f;
    of_training.z_loss = 1e-3f;
  }
  of_plan.preference = cases[which].preference;
  TRY(stw_plan_create(&plan, model, &of_plan, &error));
  snprintf(marks, sizeof marks, "%s/marks", folder);
  snprintf(reference, sizeof reference, "%s/reference", folder);
  if (of_plan.preference) {
    of_data.marks = marks;
    of_data.pairs = 1;
    of_training.answer_share = 0.25f;
  }
  snprintf(path, sizeof path, "%s/text", folder);
  of_data.path = path;
  of_data.vocabulary = 256;
  of_data.sequence = of_plan.sequence;
  TRY(stw_dataset_open(&dataset, &of_data, &error));
  TRY(stw_trainer_create(&trainer, device, model, plan, &of_training, &error));
  if (of_plan.preference == STW_PREFERENCE_DPO || of_plan.preference == STW_PREFERENCE_IPO) {
    TRY(stw_trainer_write_reference(trainer, dataset, reference, &error));
    stw_dataset_close(dataset);
    dataset = NULL;
    of_data.reference = reference;
    TRY(stw_dataset_open(&dataset, &of_data, &error));
    result = add_file(digest, reference);
    if (result) goto failed;
    result = 1;
  }
  of_run.until = 4;
  of_run.warmup = 1;
  of_run.learning_rate = 3e-3;
  of_run.progress = add_progress;
  of_run.progress_user = digest;
  TRY(stw_trainer_run(trainer, dataset, &of_run, &error));
  TRY(stw_trainer_evaluate(trainer, dataset, 1, &loss, &error));
  *digest = add(*digest, &loss, sizeof loss);
  of_generation.prompt = prompt;
  of_generation.prompt_count = 3;
  of_generation.out = tokens;
  of_generation.out_capacity = 8;
  of_generation.temperature = 0.8;
  TRY(stw_trainer_generate(trainer, &of_generation, &count, &error));
  *digest = add(*digest, tokens, sizeof tokens);
  TRY(stw_trainer_export_model(trainer, folder, &error));
  snprintf(path, sizeof path, "%s/%s", folder,
           of_model.adapter_rank ? "adapter_model.safetensors" : "model.safetensors");
  result = add_file(digest, path);

failed:
  if (result) fprintf(stderr, "bits_test: %s: %s\n", stw_status_name(error.status), error.message);
  stw_trainer_destroy(trainer);
  stw_dataset_close(dataset);
  stw_plan_destroy(plan);
  stw_model_destroy(model);
  stw_device_close(device);
  return result;
}

int main(int argc, char** argv) {
  char path[4096];
  int wrong = 0;
  size_t i;
  uint32_t random = 1;
  FILE *text, *marks;
  if (argc != 2) {
    fprintf(stderr, "usage: bits_test FOLDER\n");
    return 2;
  }
  snprintf(path, sizeof path, "%s/text", argv[1]);
  if (!(text = fopen(path, "wb"))) {
    perror(path);
    return 1;
  }
  for (i = 0; i < 5000; ++i) {
    random = random * 1664525u + 1013904223u;
    fputc((int)(random >> 24) & (int)(random >> 16) & 255, text);
  }
  if (fclose(text)) {
    perror(path);
    return 1;
  }
  /* Documents of 12 and 8 tokens; the first three tokens are a prompt. */
  snprintf(path, sizeof path, "%s/marks", argv[1]);
  if (!(marks = fopen(path, "wb"))) {
    perror(path);
    return 1;
  }
  for (i = 0; i < 5000; ++i)
    fputc(i % 20 == 0 || i % 20 == 12                  ? STW_MARK_BEGIN
          : i % 20 < 3 || (i % 20 > 12 && i % 20 < 15) ? 0
                                                       : STW_MARK_TARGET,
          marks);
  if (fclose(marks)) {
    perror(path);
    return 1;
  }
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    uint64_t digest = 14695981039346656037u;
    if (train(argv[1], i, &digest)) return 1;
    if (digest != cases[i].digest) ++wrong;
    printf("%s  %s: %016llx, expected %016llx\n", digest == cases[i].digest ? "ok   " : "WRONG",
           cases[i].name, (unsigned long long)digest, (unsigned long long)cases[i].digest);
  }
  return wrong != 0;
}
