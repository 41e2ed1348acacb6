// Trains a model within a number of bytes, in C++20: train TEXT [MODEL [STEPS [FOLDER]]]
//
// Plans how to train MODEL (a preset, a config.json or a folder; default "nano") on the bytes of the file
// TEXT within one GiB, shows the plan, trains, evaluates, and writes a checkpoint and a model that
// transformers can load into FOLDER.
//
//   c++ -std=c++20 -I bindings/cpp train.cpp $(pkg-config --cflags --libs stowage)
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "stowage.hpp"

static void train(const char* text, const std::string& source, uint64_t steps,
                  const std::filesystem::path& folder) {
  stowage::Model model(source);
  stowage::Device device;  // a GPU if there is one, else the CPU
  auto of_plan = stowage::made<stw_plan_options>();
  of_plan.memory_bytes = 1ull << 30;
  of_plan.global_batch = 8;
  of_plan.sequence = 64;
  stowage::Plan plan(model, device, of_plan);
  std::fputs(plan.report().c_str(), stdout);

  auto of_data = stowage::made<stw_dataset_options>();
  of_data.path = text;
  of_data.vocabulary = model.info().vocabulary;
  of_data.sequence = 64;
  stowage::Dataset data(of_data);

  // allocates exactly the plan's arena; the run allocates nothing else
  stowage::Trainer trainer(device, model, plan);
  auto of_run = stowage::made<stw_run_options>();
  of_run.until = steps;
  of_run.learning_rate = 1e-3;
  trainer.run(data, of_run, [](const stw_progress& now) {
    std::printf("step %3lu  loss %.4f  gradient norm %.3f  %.0f tokens/s\n",
                static_cast<unsigned long>(now.step), now.loss, now.grad_norm, now.tokens_per_second);
    return true;
  });
  std::printf("evaluation loss %.4f\n", trainer.evaluate(data, 4));
  trainer.save(folder / "checkpoint.stw");
  trainer.export_model(folder);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: train TEXT [MODEL [STEPS [FOLDER]]]\n", stderr);
    return 2;
  }
  try {
    train(argv[1], argc > 2 ? argv[2] : "nano", argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 100,
          argc > 4 ? argv[4] : ".");
    return 0;
  } catch (const stowage::OverBudget& error) {
    // the report says why nothing fits, and what would
    if (error.plan()) std::fputs(error.plan()->report().c_str(), stderr);
    std::fprintf(stderr, "train: %s\n", error.what());
  } catch (const std::exception& error) { std::fprintf(stderr, "train: %s\n", error.what()); }
  return 1;
}
