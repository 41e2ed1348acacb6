// The folder of a run: what lies in it under which name, and that a run never damages another.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace command {

class RunFolder {
 public:
  explicit RunFolder(const std::string& path);  // trailing slashes do not matter

  const std::string& path() const { return path_; }
  std::string checkpoint() const { return path_ + "/checkpoint.stw"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string plan() const { return path_ + "/plan.json"; }
  std::string chat_template() const { return path_ + "/chat_template.jinja"; }
  std::string loss_curve() const { return path_ + "/loss.svg"; }
  std::string weights() const { return path_ + "/model.safetensors"; }
  std::string settings() const { return path_ + "/settings.json"; }
  std::string config() const { return path_ + "/config.json"; }
  // In place of weights, of a run that trained adapters.
  std::string adapter_config() const { return path_ + "/adapter_config.json"; }
  std::string adapter_weights() const { return path_ + "/adapter_model.safetensors"; }
  std::string labels() const { return path_ + "/labels.json"; }   // of a classifier
  std::string reference() const { return path_ + "/reference.bin"; }   // of a preference: log-probabilities of the model that training began with
  std::string evaluation_reference() const { return path_ + "/reference-eval.bin"; }   // the same of --eval-data
  // Checkpoints beside the last one: the last ones of --keep, by their batches, and that of the best evaluation.
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string best_checkpoint() const { return checkpoints() + "/best.stw"; }
  std::string kept_checkpoint(uint64_t batches) const;
  // All of these, there or not.
  std::vector<std::string> files() const;
  // Checkpoints of --deterministic-check, gone behind each: of the state in front of a step, and behind it, made once and twice.
  std::string check_before() const { return path_ + "/check-before.stw"; }
  std::string check_once() const { return path_ + "/check-once.stw"; }
  std::string check_twice() const { return path_ + "/check-twice.stw"; }
  // Those of a tokenizer, which a run copies beside them and which may be somebody else's.
  std::vector<std::string> tokenizer_files() const;

  // Whether a file or folder is this folder or lies in it, through links too; a folder also where one of its files is
  // a file here.
  bool holds(const std::string& path) const;
  // Whether it is one of the files above.
  bool writes(const std::string& path) const;
  // Throws where one of the files above lies in the folder, whoever wrote it. What a run leaves that ended before its first
  // checkpoint, its plan, settings, labels, references and lines of metrics, is worth nothing.
  void refuse_to_replace() const;
  // Creates the folder and its parents, and throws where files cannot be written into it.
  void make_writable() const;
  // Removes the unfinished files NAME.tmp.PROCESS.N of processes that are no more, and what their make_writable left.
  void remove_stale() const;
  // Whether there is such an unfinished file of the one named.
  bool has_stale(const std::string& file) const;
  // Where --overwrite keeps what an earlier run left, until the new one has saved.
  RunFolder replaced() const { return RunFolder(path_ + "/replaced-run"); }
  // Moves what an earlier run left there, so that nothing of it can be taken for the new one's. Where that run never saved,
  // what it was to replace stays there instead. What is kept there is always a whole run.
  void set_aside() const;
  // Puts back what a process had moved that was killed in set_aside, as if it had not begun. Comes before anything else is asked of
  // a folder where a run begins or goes on, and before the caller locks it.
  void undo_set_aside() const;
  // Makes the checkpoint, as it is now, the one of the best evaluation; or one of the last ones, of which `most` stay. It takes no room until the checkpoint is written again.
  // False: the file system has no links.
  bool keep_best() const;
  bool keep_checkpoint(uint64_t batches, uint64_t most) const;
  // The model card, which is the user's own unless a run wrote it, as its mark says; none of the files above. With the mark it is moved and removed with them.
  std::string card() const { return path_ + "/README.md"; }
  // Removes what was set aside, once there is something in its place.
  void forget_replaced() const;

 private:
  bool has_result() const;   // a checkpoint, or weights
  std::vector<std::string> early_files() const;   // what a run writes before its first checkpoint
  // What is moved lies here until all of it does. While this folder is there, nothing new is written.
  RunFolder moving() const { return RunFolder(path_ + "/replaced-run.moving"); }
  // From there, by whoever has the folder's lock.
  void put_back() const;
  void clear() const;

  std::string path_;
};

// A folder that is made goes with this, if nothing came into it.
class MadeFolder {
 public:
  explicit MadeFolder(const std::string& path);   // before it is made
  ~MadeFolder();
  MadeFolder(const MadeFolder&) = delete;

 private:
  std::string path_;   // empty: it was there
};

}  // namespace command
