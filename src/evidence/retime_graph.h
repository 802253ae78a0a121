// RetimeGraph: the nodes behind Retimer, in an order in which every node comes after those it waits
// for. Internal to this layer, and to its tests.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "evidence/host.h"
#include "evidence/retime.h"

namespace culprit::evidence {

inline constexpr std::int64_t kMostActivities = 24'000;

struct RetimeNode {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  enum class Kind : std::uint8_t {
    kActivity,
    kCall,  // a call on the host, up to its return; of a waiting call only its issue
    kWait,  // the rest of a waiting call: ends `cost` behind `trigger`
  };
  Kind kind = Kind::kCall;
  bool comm = false;        // an activity that moves data between ranks
  bool full_queue = false;  // a wait for room in the queue of launches
  bool folded = false;      // a call that a graph of the step would save
  bool anchored =
      false;  // begins no earlier than recorded: what it waited for is not in the window
  std::uint32_t row = 0;         // index of the activity, or row of the call
  std::uint32_t group = 0;       // of an activity
  std::uint32_t before = kNone;  // the node in front on the same stream or thread
  std::uint32_t trigger =
      kNone;                    // an activity's call (counts from its begin); what a wait waits for
  std::uint32_t other = kNone;  // an activity of another stream that must have ended
  std::uint32_t launches = kNone;  // a call's only activity
  Nanos gap = 0;                   // behind the end of `before`
  Nanos gap_of_op = 0;             // of a call's gap: work of the operator around its activity
  Nanos gap_of_last_op = 0;        // ... and work of the operator around that of `before`
  Nanos latency = 0;               // behind the begin of `trigger`
  Nanos behind_other = 0;          // behind the end of `other`
  Nanos cost = 0;                  // own duration
  Nanos begin = 0, end = 0;        // as recorded, device times on the host's clock
};

struct RetimeGraph {
  std::vector<RetimeNode> nodes;
  std::uint32_t first = 0, last = 0;  // activities whose begins bound the window's steps
  bool to_end = false;                // the window lasts to the end of `last`
  std::int64_t steps = 0;
  Nanos recorded = 0;  // length of the window
  Nanos residual = 0;  // in the window
};

// Empty text: the graph was built. Else why there is none.
std::string build_graph(const run::Run& run, const HostView& host, RetimeGraph& graph);

// Begin and end of every node after a change, and which of its edges decided its begin (or, of a
// wait, its end).
struct Timing {
  enum class By : std::uint8_t { kAnchor, kBefore, kTrigger, kOther };
  std::vector<Nanos> begin, end;
  std::vector<By> by;
};
Timing run_graph(const RetimeGraph& graph, const Change& change);
Nanos window_length(const RetimeGraph& graph, const Timing& timing);

}  // namespace culprit::evidence
