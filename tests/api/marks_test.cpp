// Prompts and answers: a file of marks gives the tokens that are targets, and the beginnings of examples.
#include <cmath>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

// Examples of 8 bytes; the last three are the answer.
struct Files {
  TemporaryDirectory folder;
  std::string tokens = folder / "examples.txt", marks = folder / "marks";

  Files() {
    std::string all;
    for (int i = 0; i < 100; ++i)
      all += {STW_MARK_BEGIN, 0, 0, 0, 0, STW_MARK_TARGET, STW_MARK_TARGET, STW_MARK_TARGET};
    put_file(tokens, text_of(all.size()).substr(0, all.size()));
    put_file(marks, all);
  }
  stw_dataset_options options() const {
    auto o = sized<stw_dataset_options>();
    o.path = tokens.c_str();
    o.marks = marks.c_str();
    o.vocabulary = 256;
    o.sequence = 16;
    return o;
  }
};

stw_plan_options with_positions() {
  auto o = plan_options();
  o.inputs = STW_INPUT_POSITIONS;
  return o;
}

TEST(Marks, OnlyAnswersAreTargets) {
  const Files files;
  uint64_t targets = 0;
  auto options = sized<stw_trainer_options>();
  options.gradient_user = &targets;
  options.gradient_hook = [](void* user, const stw_gradients* g) -> int32_t {
    *static_cast<uint64_t*>(user) = *g->target_count;
    return 0;
  };
  const World world("nano", with_positions(), &options);
  const auto dataset = open_dataset(files.options());
  run(world.trainer.get(), dataset.get(), 1);
  EXPECT_EQ(targets, 4u * 6);  // four samples of two examples
  double loss = 0;
  stw_error error = sized<stw_error>();
  must(stw_trainer_evaluate(world.trainer.get(), dataset.get(), 2, &loss, &error), error);
  EXPECT_GT(loss, 0);
  auto info = sized<stw_dataset_info>();
  EXPECT_EQ(stw_dataset_query(dataset.get(), &info), STW_OK);
  EXPECT_EQ(info.training_tokens, 720u);
  EXPECT_EQ(info.evaluation_tokens, 80u);
  EXPECT_EQ(info.training_samples, 45u);
  EXPECT_EQ(info.evaluation_samples, 5u);
  // There are five samples: more batches do not repeat any.
  double all = 0;
  must(stw_trainer_evaluate(world.trainer.get(), dataset.get(), 20, &all, &error), error);
  EXPECT_EQ(all, loss);
  put_file(files.marks, std::string(100, STW_MARK_BEGIN) + std::string(700, 0));
  const auto nothing = open_dataset(files.options());
  must(stw_trainer_evaluate(world.trainer.get(), nothing.get(), 2, &all, &error), error);
  EXPECT_TRUE(std::isnan(all));
}

TEST(Marks, NeedPositionsAndExcludeADocumentEnd) {
  const Files files;
  const World world("nano", plan_options());
  const auto dataset = open_dataset(files.options());
  stw_error error = sized<stw_error>();
  const stw_run_options o = run_options(1);
  EXPECT_EQ(stw_trainer_run(world.trainer.get(), dataset.get(), &o, &error), STW_BAD_STATE);
  EXPECT_NE(std::string(error.message).find("positions"), std::string::npos) << error.message;
  auto both = files.options();
  both.set_mask = STW_SET_DOCUMENT_END;
  both.document_end = 10;
  stw_dataset* out = nullptr;
  EXPECT_EQ(stw_dataset_open(&out, &both, &error), STW_BAD_ARGUMENT);
  auto empty = files.options();
  empty.marks = "";
  EXPECT_EQ(stw_dataset_open(&out, &empty, &error), STW_BAD_ARGUMENT);
  put_file(files.marks, "too few");
  const auto short_of_marks = files.options();
  EXPECT_EQ(stw_dataset_open(&out, &short_of_marks, &error), STW_CORRUPT);
  EXPECT_NE(std::string(error.message).find("a mark for each token"), std::string::npos) << error.message;
  EXPECT_EQ(out, nullptr);
}

}  // namespace
}  // namespace stw::api_test
