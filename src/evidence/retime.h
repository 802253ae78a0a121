// Retiming: some steps of the run as a graph of what waits for what, so that a change is carried
// through to the step it leads to, and to what bounds that step. Host threads run in order (their own
// work between two calls is a constant), a kernel starts behind its launch, behind the one before it
// on its stream, and behind the kernel of another stream that it waited for; a waiting call returns
// behind what it waited for. Starts follow from this alone: no recorded gap is replayed. Without a
// change it must give the recorded step again, and says how well it does.
//
// Build O(n log n), retime O(n), n = calls and activities of a window of at most kMostActivities.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/host.h"
#include "run/run.h"

namespace culprit::evidence {

// What bounds a step: where its critical path spends most of its time.
enum class Bound : std::uint8_t { kDevice, kCommunication, kHostLaunch, kHostWait };
inline constexpr std::size_t kBounds = 4;
std::string_view bound_name(Bound);  // "gpu", "communication", "host-launch", "host-sync"

// A change of the run; as it stands, none.
struct Change {
  std::vector<double> scale;  // by kernel group: factor on its time; 0 takes its launch away too
  double host = 1;            // factor on the host's own time
  bool graph = false;         // one launch per step instead of one per kernel
  bool no_waits = false;      // calls that wait for the device return at once
};

struct Retimed {
  Nanos step = 0;                     // mean over the window's steps
  std::array<Nanos, kBounds> path{};  // its critical path by what bounds it; sums to `step`
  Bound bound = Bound::kDevice;
};

struct RetimeGraph;  // retime_graph.h

class Retimer {
 public:
  Retimer(const run::Run& run, const HostView& host);
  ~Retimer();
  Retimer(Retimer&&) noexcept;
  Retimer& operator=(Retimer&&) noexcept;

  // Why there is no retiming: "no launches in the trace", ...; empty: it works.
  const std::string& off() const { return off_; }
  Retimed retime(const Change& change) const;  // only where off() is empty
  // Profilers slow the host: the factor (0 to 1) on its time at which the unchanged step takes
  // `step_ns`, as measured without one; 1 where retiming is off.
  double host_factor(double step_ns) const;
  // |step without a change - recorded step| / recorded step, over the window's steps.
  double error() const { return error_; }
  // Time per step by which activities began later than every edge explains.
  Nanos residual() const { return residual_; }
  Nanos recorded_step() const { return recorded_; }
  std::int64_t steps() const { return steps_; }  // in the window

 private:
  std::unique_ptr<RetimeGraph> graph_;
  std::string off_;
  double error_ = 0;
  Nanos residual_ = 0, recorded_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace culprit::evidence
