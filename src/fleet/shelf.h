// Shelf: the folder in which finished summaries are kept, a file for each trace. A summary is good for one
// path, size, time of change, version of the program and set of flags (its key); with another key it counts
// as not finished. Files are there whole or not at all: each is written beside its name and renamed. Any
// number of processes may write different summaries at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/summary.h"

namespace culprit::fleet {

// A trace on disk, as it was found.
struct TraceFile {
  std::string path;  // as the answer shows it
  std::int64_t bytes = 0;
  std::int64_t changed = 0;  // ns since the file system's epoch
};

class Parts;  // of a summary's file

// Called as summaries are read: how many of how many.
using Progress = std::function<void(std::size_t done, std::size_t of)>;

class Shelf {
 public:
  // `flags`: whatever else decides what a summary says.
  Shelf(std::string folder, std::string flags);

  Status create() const;  // the folder, where it is not there. Errors: kCannotRead, naming it
  bool has(const TraceFile& trace) const;   // finished, and worth keeping
  void drop(const TraceFile& trace) const;  // harmless where there is none
  // Also of a trace that could not be read: so that whoever answers knows. Such a fault of the moment
  // (kCannotRead) is tried again by the next run.
  Status keep(const TraceFile& trace, const Summary& summary) const;

  // Without steps and collectives; with all; with the collectives of some steps and all else. Errors:
  // kCannotRead where it is not there, damaged or of another key.
  Result<Summary> load_head(const TraceFile& trace) const;
  Result<Summary> load(const TraceFile& trace, StepRange steps = {}) const;
  std::string file_of(const TraceFile& trace) const;  // where its summary is, or would be

 private:
  std::string key_of(const TraceFile& trace) const;
  Status open(const TraceFile& trace, Parts& parts, Summary& summary) const;
  std::string folder_, flags_;
};

// Paths with their size and time; of one that is not there 0 and 0.
std::vector<TraceFile> look_up(const std::vector<std::string>& paths);

// Writes a file beside its name and renames it. Errors: kCannotRead, naming the file.
Status replace_file(const std::string& path, std::string_view content);

}  // namespace culprit::fleet
