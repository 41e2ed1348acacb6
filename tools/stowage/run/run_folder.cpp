#include "run/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/failure.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/json_fields.h"
#include "data/tokenization.h"
#include "evaluation/reference.h"
#include "run/model_card.h"

namespace command {
namespace {

namespace fs = std::filesystem;

// Prefix of the empty file that tests whether a folder is writable. Six random letters follow.
constexpr std::string_view probe = ".writable-";

// The process that writes NAME.tmp.PROCESS.N. Empty if the name does not have this form.
std::optional<pid_t> writer_of(std::string_view file, std::string_view name) {
  if (!file.starts_with(name)) return std::nullopt;
  file.remove_prefix(name.size());
  constexpr std::string_view mark = ".tmp.";
  if (!file.starts_with(mark)) return std::nullopt;
  file.remove_prefix(mark.size());
  const char* const end = file.data() + file.size();
  pid_t process = 0;
  unsigned number = 0;
  const auto first = std::from_chars(file.data(), end, process);
  if (first.ec != std::errc() || process <= 0 || first.ptr == end || *first.ptr != '.') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, number);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return process;
}

// Whether the file is an unfinished NAME of a process that has ended.
bool is_stale(std::string_view file, std::string_view name) {
  const auto process = writer_of(file, name);
  return process && ::kill(*process, 0) != 0 && errno == ESRCH;
}

bool is_plan(const std::string& file) {
  const auto text = is_folder(file) ? std::nullopt : read_text_if_there(file);
  return text && json_string(*text, "", "format") == "stowage-plan";
}

void move(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw Failure(exit_failed, fmt::format("{}: cannot move to {}: {}", from, to, std::strerror(errno)));
}

void move_those_there(const std::vector<std::string>& from, const std::vector<std::string>& to) {
  for (size_t i = 0; i < from.size(); ++i)
    if (is_there(from[i])) move(from[i], to[i]);
}

// Names of the entries of a folder. A range-based loop would throw an exception without the folder's name.
std::vector<std::string> entries_of(const std::string& folder, std::error_code& problem) {
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem))
    names.push_back(at->path().filename().string());
  return names;
}

// Moves all entries of a folder, if it exists.
void move_entries(const std::string& from, const std::string& to) {
  std::error_code problem;
  const std::vector<std::string> names = entries_of(from, problem);
  if (problem && problem != std::errc::no_such_file_or_directory)
    throw Failure(exit_failed, fmt::format("{}: cannot read the folder: {}", from, problem.message()));
  for (const std::string& name : names) move(from + "/" + name, to + "/" + name);
}

// The batches in the name of a checkpoint of --keep.
std::optional<uint64_t> batches_of(std::string_view name) {
  constexpr std::string_view end = ".stw";
  uint64_t batches = 0;
  if (!name.ends_with(end)) return std::nullopt;
  name.remove_suffix(end.size());
  const auto read = std::from_chars(name.data(), name.data() + name.size(), batches);
  return read.ec == std::errc() && read.ptr == name.data() + name.size() ? std::optional(batches)
                                                                         : std::nullopt;
}

// Makes a hard link that replaces `to` atomically.
bool link_in_place(const std::string& from, const std::string& to) {
  const std::string temporary = to + unfinished;
  ::unlink(temporary.c_str());
  return ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) == 0 &&
         ::rename(temporary.c_str(), to.c_str()) == 0;
}

bool is_empty_file(const std::string& path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
}

}  // namespace

MadeFolder::MadeFolder(const std::string& path) : path_(is_folder(path) ? "" : path) {}

MadeFolder::~MadeFolder() {
  if (!path_.empty()) ::rmdir(path_.c_str());  // fails if the folder is not empty
}

RunFolder::RunFolder(const std::string& path) : path_(path) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
}

bool RunFolder::holds(const std::string& path) const {
  std::error_code problem;
  if (path.empty() || !is_there(path)) return false;
  // Goes upwards from two places: from the folder in which the name lies, because a link in the run's folder
  // would be removed with the run, and from the target of all links.
  const bool upwards = fs::path(path).filename() == "..";
  const fs::path parent =
      upwards ? fs::path() : fs::canonical(fs::absolute(path, problem).parent_path(), problem);
  for (const fs::path& start : {parent, fs::canonical(path, problem)})
    for (fs::path at = start; at.has_relative_path(); at = at.parent_path())
      if (is_same(at.string(), path_)) return true;
  if (is_folder(path))
    for (const std::string& name : entries_of(path, problem))
      if (writes(path + "/" + name)) return true;
  return false;
}

std::vector<std::string> RunFolder::files() const {
  return {checkpoint(),           checkpoints(), weights(),  adapter_weights(),
          adapter_config(),       config(),      labels(),   reference(),
          evaluation_reference(), plan(),        settings(), metrics(),
          loss_curve(),           held_out()};
}

std::vector<std::string> RunFolder::early_files() const {
  return {plan(), metrics(), settings(), labels(), held_out(), reference(), evaluation_reference()};
}

std::vector<std::string> RunFolder::tokenizer_files() const {
  std::vector<std::string> files;
  for (const char* name : tokenizer_file_names()) files.push_back(path_ + "/" + name);
  return files;
}

std::string RunFolder::kept_checkpoint(uint64_t batches) const {
  return fmt::format("{}/{}.stw", checkpoints(), batches);
}

bool RunFolder::keep_best() const {
  std::error_code problem;
  fs::create_directories(checkpoints(), problem);
  return link_in_place(checkpoint(), best_checkpoint());
}

bool RunFolder::keep_checkpoint(uint64_t batches, uint64_t most) const {
  std::error_code problem;
  fs::create_directories(checkpoints(), problem);
  const bool is_kept = link_in_place(checkpoint(), kept_checkpoint(batches));
  std::vector<uint64_t> kept;
  for (const std::string& name : entries_of(checkpoints(), problem))
    if (const auto of_file = batches_of(name)) kept.push_back(*of_file);
  std::sort(kept.rbegin(), kept.rend());
  for (size_t i = most; i < kept.size(); ++i) ::unlink(kept_checkpoint(kept[i]).c_str());
  return is_kept;
}

bool RunFolder::writes(const std::string& path) const {
  for (const std::string& file : files())
    if (is_same(path, file)) return true;
  return is_card_of_run(card()) && is_same(path, card());
}

void RunFolder::refuse_to_replace() const {
  if (is_there(checkpoint()))
    throw Failure(exit_failed, fmt::format("{} exists already: continue that run with --resume {}, replace "
                                           "it with --overwrite, or give another --out",
                                           checkpoint(), path_));
  if (replaced().has_result())
    throw Failure(exit_failed,
                  fmt::format("{} holds an earlier run; the run that was to replace it never saved: move the "
                              "earlier run away, replace it with --overwrite, or give another --out",
                              replaced().path()));
  // Files from before the first checkpoint may be replaced if a plan shows that a run wrote them. The plan is
  // written first.
  const std::vector<std::string> leftovers = is_plan(plan()) ? early_files() : std::vector<std::string>();
  for (const std::string& file : files())
    if (is_there(file) && std::find(leftovers.begin(), leftovers.end(), file) == leftovers.end())
      throw Failure(
          exit_failed,
          fmt::format("{} exists already: give another --out, or replace it with --overwrite", file));
}

void RunFolder::make_writable() const {
  std::error_code problem;
  fs::create_directories(path_, problem);
  if (problem && !is_folder(path_))
    throw Failure(exit_failed,
                  fmt::format("--out {}: cannot create the folder: {}", path_, problem.message()));
  if (!is_folder(path_))
    throw Failure(exit_failed, fmt::format("--out {}: expected a folder, found a file", path_));
  std::string name = fmt::format("{}/{}XXXXXX", path_, probe);
  const int file = made_file(name);
  if (file < 0)
    throw Failure(exit_failed,
                  fmt::format("--out {}: cannot write into the folder: {}", path_, std::strerror(errno)));
  ::close(file);
  ::unlink(name.c_str());
}

void RunFolder::remove_stale() const {
  const std::vector<std::string> references{reference() + unfinished, evaluation_reference() + unfinished};
  for (const std::string& file : references) ::unlink(file.c_str());  // left by a run that was killed
  std::vector<std::string> written = files();
  for (const std::vector<std::string>& more :
       {tokenizer_files(), references, {check_before(), check_once(), check_twice(), card()}})
    written.insert(written.end(), more.begin(), more.end());
  std::error_code problem;  // ignored: a writable folder may not be readable
  for (const std::string& entry : entries_of(path_, problem)) {
    const std::string path = path_ + "/" + entry;
    for (const std::string& file : written)
      if (is_stale(path, file)) ::unlink(path.c_str());
    if (entry.starts_with(probe) && entry.size() == probe.size() + 6 && is_empty_file(path))
      ::unlink(path.c_str());
  }
}

bool RunFolder::has_stale(const std::string& file) const {
  std::error_code problem;
  const std::vector<std::string> entries = entries_of(path_, problem);
  return std::any_of(entries.begin(), entries.end(),
                     [&](const std::string& entry) { return is_stale(path_ + "/" + entry, file); });
}

bool RunFolder::has_result() const {
  return is_there(checkpoint()) || is_there(weights()) || is_there(adapter_weights());
}

void RunFolder::set_aside() const {
  const RunFolder aside = replaced(), part = moving();
  // If the run here never saved, the run in `aside` is the one to keep.
  const bool never_saved = !is_there(checkpoint()) && aside.has_result();
  if (has_result() && !never_saved) {
    const FolderLock lock(aside.path());
    if (::mkdir(part.path().c_str(), 0777) != 0)
      throw Failure(exit_failed,
                    fmt::format("{}: cannot create the folder: {}", part.path(), std::strerror(errno)));
    try {
      move_those_there(files(), part.files());
      move_those_there(tokenizer_files(), part.tokenizer_files());
      if (is_card_of_run(card())) move(card(), part.card());
      aside.clear();
      const std::vector<std::string> moved = part.tokenizer_files(), older = aside.tokenizer_files();
      for (size_t i = 0; i < moved.size(); ++i)
        if (is_there(moved[i])) ::unlink(older[i].c_str());
      move_entries(aside.path(), part.path());  // other programs' files stay in that folder
      move(part.path(), aside.path());          // atomically replaces the empty folder
    } catch (const Failure& failure) {
      try {
        put_back();
      } catch (const Failure&) {  // the next run here will do it
      }
      throw Failure(failure);
    }
  }
  clear();
}

void RunFolder::undo_set_aside() const {
  if (!is_folder(moving().path())) return;
  const FolderLock lock(path_);  // fails if another process is at work
  put_back();
}

void RunFolder::put_back() const {
  const RunFolder part = moving();
  std::vector<std::string> from = part.files(), to = files();
  from.push_back(part.card()), to.push_back(card());
  for (size_t i = 0; i < from.size(); ++i)  // no run writes here before the files are back
    if (is_there(from[i]) && is_there(to[i]))
      throw Failure(exit_failed,
                    fmt::format("{} belongs to the run in {}, and so does {}: move one of them away", from[i],
                                path_, to[i]));
  move_those_there(from, to);
  move_those_there(part.tokenizer_files(), tokenizer_files());
  move_entries(part.path(), replaced().path());
  if (::rmdir(part.path().c_str()) != 0)
    throw Failure(exit_failed, fmt::format("{}: cannot remove: {}", part.path(), std::strerror(errno)));
}

void RunFolder::forget_replaced() const {
  const RunFolder aside = replaced();
  if (!is_folder(aside.path())) return;
  try {
    const FolderLock lock(aside.path());
    aside.clear();
    const std::vector<std::string> here = tokenizer_files(), there = aside.tokenizer_files();
    for (size_t i = 0; i < here.size(); ++i)  // keeps a tokenizer that differs from the one here
      if (is_there(there[i]) && read_text_if_there(here[i]) == read_text_if_there(there[i]))
        ::unlink(there[i].c_str());
    ::rmdir(aside.path().c_str());  // fails if other programs' files are left
  } catch (const Failure&) {        // in use by another process, or not removable: the run need not fail
  }
}

void RunFolder::clear() const {
  std::vector<std::string> list = files();
  std::erase(list, plan());
  if (is_card_of_run(card())) list.push_back(card());
  list.push_back(plan());  // last, because the plan identifies the leftovers if this is interrupted
  std::error_code problem;
  for (const std::string& name : entries_of(checkpoints(), problem))
    if (const std::string file = checkpoints() + "/" + name;
        batches_of(name) || file == best_checkpoint() || file.ends_with(unfinished))
      ::unlink(file.c_str());
  if (is_folder(checkpoints()) && ::rmdir(checkpoints().c_str()) != 0)
    throw Failure(exit_failed, fmt::format("{}: cannot remove: {}", checkpoints(), std::strerror(errno)));
  std::erase(list, checkpoints());
  for (const std::string& file : list)
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
      throw Failure(exit_failed, fmt::format("{}: cannot remove: {}", file, std::strerror(errno)));
}

}  // namespace command
