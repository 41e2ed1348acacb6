// The folder of a run: the names of its files, and the rules that protect other runs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace command {

class RunFolder {
 public:
  explicit RunFolder(const std::string& path);  // ignores trailing slashes

  const std::string& path() const { return path_; }
  std::string checkpoint() const { return path_ + "/checkpoint.stw"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string plan() const { return path_ + "/plan.json"; }
  std::string chat_template() const { return path_ + "/chat_template.jinja"; }
  std::string loss_curve() const { return path_ + "/loss.svg"; }
  std::string weights() const { return path_ + "/model.safetensors"; }
  std::string settings() const { return path_ + "/settings.json"; }
  std::string config() const { return path_ + "/config.json"; }
  // Written instead of weights by a run that trained adapters.
  std::string adapter_config() const { return path_ + "/adapter_config.json"; }
  std::string adapter_weights() const { return path_ + "/adapter_model.safetensors"; }
  std::string labels() const { return path_ + "/labels.json"; }  // of a classifier
  // Which texts are held out (data/hold_out.h). Plain text and token ids have no such file.
  std::string held_out() const { return path_ + "/held-out.txt"; }
  // for preferences: log-probabilities of the model with which training began
  std::string reference() const { return path_ + "/reference.bin"; }
  // the same for --eval-data
  std::string evaluation_reference() const { return path_ + "/reference-eval.bin"; }
  // Checkpoints in addition to the last one: the recent ones of --keep, named by their batches, and that of
  // the best evaluation.
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string best_checkpoint() const { return checkpoints() + "/best.stw"; }
  std::string kept_checkpoint(uint64_t batches) const;
  // All files above, whether they exist or not.
  std::vector<std::string> files() const;
  // Temporary checkpoints of --deterministic-check: the state before a step, after it, and after its
  // repetition. They are removed after each check.
  std::string check_before() const { return path_ + "/check-before.stw"; }
  std::string check_once() const { return path_ + "/check-once.stw"; }
  std::string check_twice() const { return path_ + "/check-twice.stw"; }
  // The tokenizer files, which a run copies into its folder. They may also belong to someone else.
  std::vector<std::string> tokenizer_files() const;

  // Whether `path` is this folder or lies in it, also through links. Also true if `path` is a folder in which
  // one of the files above lies.
  bool holds(const std::string& path) const;
  // Whether `path` is one of the files above.
  bool writes(const std::string& path) const;
  // Throws a Failure if one of the files above exists, no matter who wrote it. The leftovers of a run that
  // ended before its first checkpoint (plan, settings, labels, references and metrics) do not count.
  void refuse_to_replace() const;
  // Creates the folder and its parents. Throws a Failure if files cannot be written into it.
  void make_writable() const;
  // Removes unfinished files NAME.tmp.PROCESS.N of processes that have ended, and leftovers of their
  // make_writable().
  void remove_stale() const;
  // Whether there is an unfinished file of this name.
  bool has_stale(const std::string& file) const;
  // The folder in which --overwrite keeps an earlier run until the new one has saved.
  RunFolder replaced() const { return RunFolder(path_ + "/replaced-run"); }
  // Moves an earlier run to replaced(), so that none of its files can be mistaken for a file of the new run.
  // If the run here never saved, the complete run that is already in replaced() stays there, and the files
  // here are removed.
  void set_aside() const;
  // Moves the files back if a process was killed in set_aside(). Call it before anything else reads the
  // folder of a new or resumed run, and before the caller locks the folder.
  void undo_set_aside() const;
  // keep_best makes the current checkpoint that of the best evaluation. keep_checkpoint adds it to the recent
  // ones, of which `most` stay. Both make a hard link, which takes no space until the checkpoint is written
  // again. They return false if the file system has no hard links.
  bool keep_best() const;
  bool keep_checkpoint(uint64_t batches, uint64_t most) const;
  // The model card. It belongs to the user unless its mark says that a run wrote it, so it is not among
  // files(). A card with the mark is moved and removed with the run.
  std::string card() const { return path_ + "/README.md"; }
  // Removes the earlier run, once the new one has saved.
  void forget_replaced() const;

 private:
  bool has_result() const;                       // a checkpoint or weights exist
  std::vector<std::string> early_files() const;  // files that a run writes before its first checkpoint
  // The folder that collects the files to move until all are there. While it exists, nothing new is written.
  RunFolder moving() const { return RunFolder(path_ + "/replaced-run.moving"); }
  // Moves the files back from moving(). The caller holds the folder's lock.
  void put_back() const;
  void clear() const;

  std::string path_;
};

// Stands for a folder that is made later. If that folder is still empty when this object ends, it is removed.
class MadeFolder {
 public:
  explicit MadeFolder(const std::string& path);  // construct it before the folder is made
  ~MadeFolder();
  MadeFolder(const MadeFolder&) = delete;

 private:
  std::string path_;  // empty: the folder existed already
};

}  // namespace command
