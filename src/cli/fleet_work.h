// FleetWork: the traces of a folder, summarized by the processes of an MPI run (or by one). Every process
// finds the same list, takes its share of what is not finished and puts summaries on the shelf; the first
// process then has them all. Processes tell each other nothing but that they agree, and when they are done.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "fleet/shelf.h"
#include "ranks/ranks.h"

namespace culprit::cli {

class FleetWork {
 public:
  // `ranks`: the processes of the run; null: this one alone. Both must outlive this.
  FleetWork(const Settings& settings, Console& console, Ranks* ranks);

  // Each process calls these at the same place and gets the same error, if any.
  Status find();       // the traces, and which are finished
  Status summarize();  // those that are not

  const fleet::Shelf& shelf() const { return shelf_; }
  const std::vector<fleet::TraceFile>& traces() const { return traces_; }
  std::int64_t reused() const { return std::ssize(traces_) - std::ssize(pending_); }

 private:
  Status find_traces_alone();
  Status same_everywhere() const;
  void find_pending();
  Status summarize_share();
  bool first() const { return ranks_ == nullptr || ranks_->rank() == 0; }

  const Settings& settings_;
  Console& console_;
  Ranks* ranks_;
  fleet::Shelf shelf_;
  std::vector<fleet::TraceFile> traces_;
  std::vector<std::size_t> pending_;  // indices of those that are not finished
};

// Joins the MPI run that this process was started in; null where it was started by hand. Errors: no MPI.
Result<std::unique_ptr<Ranks>> join_fleet();

}  // namespace culprit::cli
