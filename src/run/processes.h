// Processes: the host processes of a file. Correlation and External ids are unique within one of
// them only; a merged file holds several, under rank labels ("[TP00] 4001") or with nothing but
// pids of their own.
#pragma once

#include <span>
#include <vector>

#include "store/trace.h"

namespace culprit::run {

using ProcessId = Id<struct ProcessTag>;

class Processes {
 public:
  Processes() = default;
  explicit Processes(const store::Trace& trace);

  ProcessId of(store::ThreadId thread) const { return of_thread_[thread.index]; }
  store::StringId pid(ProcessId process) const { return pids_[process.index]; }
  // Those that may have launched what is drawn on a device row: of its label, those with calls, or
  // with operators where none has calls.
  std::span<const ProcessId> hosts(store::ThreadId device_row) const {
    return labels_[label_of_thread_[device_row.index]].hosts;
  }
  bool has_operators(ProcessId process) const { return has_operators_[process.index] != 0; }
  bool shared() const { return shared_; }  // some label has several hosts

 private:
  struct Label {
    store::StringId rank;
    std::vector<ProcessId> hosts;
  };
  std::vector<ProcessId> of_thread_;
  std::vector<std::uint32_t> label_of_thread_;
  std::vector<store::StringId> pids_;        // by process
  std::vector<std::uint8_t> has_operators_;  // by process
  std::vector<Label> labels_;
  bool shared_ = false;
};

}  // namespace culprit::run
