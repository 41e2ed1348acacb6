"""Flags of other trainers: the refusal names the command's own flag for the same setting."""

import re

from support import ROOT, USAGE, CommandTest

# The fields of transformers' TrainingArguments and Seq2SeqTrainingArguments (5.24), PEFT's LoraConfig (0.21)
# and TRL's SFTConfig, DPOConfig, ModelConfig and ScriptArguments (1.16).
FIELDS = """
accelerator_config activation_checkpointing activation_checkpointing_kwargs activation_offloading adam_beta1
adam_beta2 adam_epsilon alora_invocation_tokens alpha_pattern arrow_config assistant_only_loss
attn_implementation auto_find_batch_size auto_mapping average_tokens_across_devices base_model_name_or_path
batch_eval_metrics beta bf16 bf16_full_eval bias bnb_4bit_quant_storage bnb_4bit_quant_type chat_template_path
columns completion_only_loss corda_config data_dir data_files data_seed dataloader_drop_last
dataloader_in_order dataloader_multiprocessing_context dataloader_num_workers dataloader_persistent_workers
dataloader_pin_memory dataloader_prefetch_factor dataset_config dataset_kwargs dataset_name dataset_num_proc
dataset_streaming dataset_test_split dataset_text_field dataset_train_split datasets ddp_backend
ddp_broadcast_buffers ddp_bucket_cap_mb ddp_find_unused_parameters ddp_static_graph ddp_timeout debug
deepspeed disable_dropout disable_tqdm discopop_tau do_eval do_predict do_train dtype enable_jit_checkpoint
ensure_weight_tying eos_token eva_config eval_accumulation_steps eval_delay eval_do_concat_batches
eval_on_start eval_packing eval_steps eval_strategy eval_use_gather_object exclude_modules
f_alpha_divergence_coef f_divergence_type fan_in_fan_out fp16 fp16_full_eval fraction fsdp fsdp_config
full_determinism generation_config generation_max_length generation_num_beams gradient_accumulation_steps
gradient_checkpointing gradient_checkpointing_kwargs greater_is_better hub_always_push hub_model_id
hub_private_repo hub_revision hub_strategy hub_token ignore_bias_buffers ignore_data_skip include_for_metrics
include_num_input_tokens_seen inference_mode init_lora_weights kasa_config label_names label_smoothing
label_smoothing_factor layer_replication layers_pattern layers_to_transform ld_alpha learning_rate
length_column_name liger_kernel_config load_best_model_at_end load_in_4bit load_in_8bit local_rank
loftq_config log_level log_level_replica log_on_each_node logging_first_step logging_nan_inf_filter
logging_steps logging_strategy lora_alpha lora_bias lora_dropout lora_ga_config lora_modules_to_save lora_r
lora_target_modules lora_target_parameters lora_task_type loss_type loss_weights lr_scheduler_kwargs
lr_scheduler_type max_grad_norm max_length max_steps megatron_config megatron_core metric_for_best_model
model_init_kwargs model_name_or_path model_revision modules_to_save monteclora_config name neftune_noise_alpha
num_train_epochs optim optim_args optim_target_modules output_dir packing packing_strategy pad_to_multiple_of
pad_token padding_free parallelism_config path peft_type peft_version per_device_eval_batch_size
per_device_train_batch_size precompute_ref_batch_size precompute_ref_log_probs predict_with_generate
prediction_loss_only project push_to_hub qalora_group_size r rank_pattern ref_model_mixup_alpha
ref_model_sync_steps remove_unused_columns report_to restore_callback_states_from_checkpoint
resume_from_checkpoint revision router_aux_loss_coef run_name runtime_config save_on_each_node save_only_model
save_steps save_strategy save_total_limit seed shuffle_dataset skip_memory_metrics sortish_sampler split
streaming sync_ref_model target_modules target_parameters task_type test_split_size tf32 torch_compile
torch_compile_backend torch_compile_mode torch_empty_cache_steps trackio_bucket_id trackio_space_id
trackio_static_space_id train_sampling_strategy trainable_token_indices truncation_mode trust_remote_code
use_bdlora use_bnb_nested_quant use_cache use_cpu use_dora use_liger_kernel use_peft use_qalora use_rslora
use_weighting velora_config warmup_steps weight_decay
""".split()

SOURCE = ROOT / "tools/stowage/flags/foreign_flags.cpp"


class ForeignFlagsTest(CommandTest):
    def flags_of(self, command):
        return set(re.findall(r"--[a-z0-9-]+", self.run_command(command, "--help").stdout))

    def test_every_named_flag_exists(self):
        rows = re.findall(
            r'^    \{"([^"]*)", "([^"]*)", "((?:[^"\\]|\\.)*)"\},(?:   //.*)?$',
            SOURCE.read_text(),
            re.MULTILINE,
        )
        self.assertGreater(len(rows), 100)
        names = [name for name, _, _ in rows]
        self.assertEqual(len(names), len(set(names)))
        flags = {command: self.flags_of(command) for command in ("train", "eval", "classify", "generate")}
        for name, here, why in rows:
            self.assertRegex(name, r"^[a-z0-9]+(-[a-z0-9]+)*(-\*)?$")
            self.assertTrue(here or why, name)
            self.assertIs(
                name == "eval-data", "--" + name in flags["train"], name
            )  # any other flag of this name would not be foreign
            for flag in re.findall(r"--[a-z0-9-]+", here + " " + why):
                self.assertTrue(any(flag in known for known in flags.values()), f"{name}: {flag}")
            if here and here != "absent":
                self.assertTrue(here.startswith("--"), name)

    def test_every_named_value_exists(self):
        rows = re.findall(
            r'^    \{"(--[^"]*)", "([^"]*)", "([^"]*)", "([^"]*)"\},$', SOURCE.read_text(), re.MULTILINE
        )
        self.assertGreater(len(rows), 50)
        helped = self.run_command("train", "--help").stdout
        train = ["train", "--model", "nano", "--data", "none.txt", "--steps", 1, "--out", self.path("run")]
        for flag, value, here, why in rows:
            self.assertIn(f"  {flag} ", helped)
            if here != "absent" and flag != "--metric":
                self.assertRegex(helped, rf"  {flag} [a-z0-9|.-]*\b{here}\b")
            for other in re.findall(r"--[a-z0-9-]+", why):
                self.assertIn(f"  {other}", helped)
            says = f"; it is {here} here" if here != "absent" else f"; {why}"
            self.refused(*train, flag, value.replace("*", "x"), expect=USAGE, says=[f"{flag}: ", says])

    def test_every_foreign_field_has_an_answer(self):
        train = ["train", "--model", "nano", "--data", "none.txt", "--steps", 1, "--out", self.path("run")]
        ours = self.flags_of("train")
        foreign = [name for name in FIELDS if f"--{name}" not in ours]
        self.assertGreater(len(foreign), 200)
        lines = self.run_command(
            *train, *(f"--{name}=1" for name in foreign), expect=USAGE
        ).stderr.splitlines()
        self.assertEqual(len(lines), len(foreign))  # a line each
        for name, line in zip(foreign, lines):
            self.assertRegex(
                line,
                rf"^stowage: error: --{name}=1: there is no such flag; "
                r"(it is --|it is not needed: |)\S.*",
            )
            self.assertNotIn("did you mean", line)

    def test_common_spellings(self):
        train = ["train", "--model", "nano", "--data", "none.txt", "--steps", 1, "--out", self.path("run")]
        for word, here in (
            ("--learning-rate", "--lr"),
            ("--learning_rate", "--lr"),
            ("--per_device_train_batch_size", "--batch"),
            ("--num_train_epochs", "--epochs"),
            ("--warmup-ratio", "--warmup"),
            ("--gradient-accumulation-steps", "--batch"),
            ("--max-length", "--seq"),
            ("--max_seq_length", "--seq"),
            ("--epoch", "--epochs"),
            ("--lora-r", "--lora"),
            ("--lora_alpha", "--lora-alpha"),
            ("--lora_dropout", "--lora-dropout"),
            ("--weight_decay", "--weight-decay"),
            ("--bf16", "--precision bf16"),
            ("--fp16", "--precision fp16"),
            ("--gradient-checkpointing", "--recompute"),
            ("--save-steps", "--save-every"),
            ("--eval_steps", "--eval-every"),
            ("--output-dir", "--out"),
            ("--model_name_or_path", "--model"),
            ("--dataset", "--data"),
            ("--iters", "--steps"),
            ("--batch-size", "--batch"),
            ("--optim", "--optimizer"),
            ("--load-in-4bit", "--quantize nf4"),
            ("--load_in_4bit=true", "--quantize nf4"),
            ("--Max_Steps", "--steps"),
        ):
            self.refused(
                *train, word, "5", expect=USAGE, says=[f"{word}: there is no such flag; it is {here} here"]
            )
        for word, why in (
            ("--logging-steps", "metrics.jsonl has a line for every step"),
            ("--packing", "samples hold as many whole examples"),
        ):
            self.refused(
                *train,
                word,
                expect=USAGE,
                says=[f"{word}: there is no such flag; it is not needed: {why}"],
            )
        # The same message appears if the flag stands in place of a required one. Other commands name only
        # their own flags.
        self.refused(
            "train",
            "--model_name_or_path",
            "nano",
            "--data",
            "none.txt",
            expect=USAGE,
            says=["it is --model here"],
        )
        self.refused(
            "generate", "--model", "nano", "--max_new_tokens", 5, expect=USAGE, says=["it is --tokens here"]
        )
        self.refused(
            "classify", "--model", "nano", "--max-length", 5, expect=USAGE, says=["it is --seq here"]
        )
        self.refused(
            "classify",
            "--model",
            "nano",
            "--learning-rate",
            5,
            expect=USAGE,
            says=["--learning-rate: there is no such flag"],
        )
        self.refused(
            "eval",
            "--model",
            "nano",
            "--eval-data",
            "x",
            expect=USAGE,
            says=["--eval-data: there is no such flag; it is --data here"],
        )
        self.refused(
            "eval",
            "--model",
            "nano",
            "--steps",
            5,
            expect=USAGE,
            says=["--steps: there is no such flag; it is a flag of train"],
        )
        for word, says in (
            ("--push_to_hub", "nothing is uploaded"),
            ("--hub_model_id", "nothing is uploaded"),
            ("--deepspeed", "there is one device"),
            ("--use_dora", "DoRA is not supported"),
            ("--per_device_train_batch_size", "--batch-examples counts examples"),
        ):
            self.refused(*train, word, expect=USAGE, says=[f"{word}: there is no such flag; ", says])
