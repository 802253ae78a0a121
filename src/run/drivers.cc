#include "run/drivers.h"

#include <algorithm>

namespace culprit::run {
namespace {

using store::CallRow;

constexpr std::size_t kMostHosts = 64;     // of one label; more are not told apart
constexpr Nanos kClockSlack = 5'000;       // clocks of host and device agree to a few us
constexpr std::int64_t kClear = 9;         // tenths of a row's own ids that decide for the row
constexpr std::int64_t kNearlyNone = 100;  // one in so many may contradict the driver of a row
constexpr std::int64_t kMany = 10;         // one in so many contradicts a process that drives none

// What the activities of one device row say about one process.
struct Vote {
  std::int64_t own = 0;          // ids that only this process has
  std::int64_t tested = 0;       // ids that others have as well
  std::int64_t contradicts = 0;  // of those, activities that its call cannot have launched
};

struct Row {
  std::vector<Vote> votes;  // in the order of its hosts
  ProcessId driver;
};

class Drivers {
 public:
  Drivers(const store::Trace& trace, const IdTable& calls, Links& links)
      : trace_(trace), calls_(calls), links_(links), rows_(trace.threads.size()) {}

  void run() {
    const std::size_t count = trace_.device.size();
    separate_ = ids_are_separate();
    links_.driver.assign(count, ProcessId{});
    links_.unclear.assign(count, 0);
    for (std::size_t row = 0; row < count; ++row) vote(row);
    decide_all();
    for (std::size_t row = 0; row < count; ++row) link_to_driver(row);
    // Launches that have their kernel by now speak against their process elsewhere.
    for (Row& row : rows_)
      if (!row.driver.valid()) row.votes.clear();
    for (std::size_t row = 0; row < count; ++row)
      if (!driver_of(row).valid()) vote(row);
    decide_all();
    for (std::size_t row = 0; row < count; ++row) link(row);
  }

 private:
  bool ids_are_separate() const {
    const store::CallTable& calls = trace_.calls;
    IdTable all(calls.size());
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      if (calls.correlation[row] == store::kNoId) continue;
      const std::uint32_t first = *all.insert(ProcessId(0), calls.correlation[row], row);
      if (links_.processes.of(calls.thread[first]) != links_.processes.of(calls.thread[row])) {
        return false;
      }
    }
    return true;
  }
  std::span<const ProcessId> hosts_of(std::size_t row) const {
    const auto hosts = links_.processes.hosts(trace_.device.thread[row]);
    return hosts.size() > kMostHosts ? hosts.first(0) : hosts;
  }
  CallRow call_of(ProcessId process, std::size_t row) const {
    const std::int64_t id = trace_.device.correlation[row];
    if (id == store::kNoId) return CallRow{};
    const std::uint32_t call = calls_.find(process, id);
    return call == IdTable::kNone ? CallRow{} : CallRow{call};
  }
  bool can_have_launched(CallRow call, std::size_t row) const {
    const bool copies = trace_.device.kind[row] != store::DeviceKind::kKernel;
    const Api api = links_.api_of(trace_, call);
    return (!copies || api != Api::kKernelLaunch) && !has_its_kernel(call) &&
           trace_.calls.begin[call.index] <= trace_.device.begin[row] + kClockSlack;
  }
  bool has_its_kernel(CallRow call) const {
    return links_.has_activity[call.index] != 0 &&
           links_.api_of(trace_, call) == Api::kKernelLaunch;
  }
  ProcessId driver_of(std::size_t row) const {
    return rows_[trace_.device.thread[row].index].driver;
  }

  void vote(std::size_t row) {
    const auto hosts = hosts_of(row);
    std::vector<Vote>& votes = rows_[trace_.device.thread[row].index].votes;
    votes.resize(hosts.size());
    std::size_t owner = 0, owners = 0;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      if (!call_of(hosts[h], row).valid()) continue;
      owner = h;
      ++owners;
    }
    if (owners == 1) ++votes[owner].own;
    for (std::size_t h = 0; h < hosts.size() && owners > 1; ++h) {
      const CallRow call = call_of(hosts[h], row);
      if (!call.valid()) continue;
      ++votes[h].tested;
      votes[h].contradicts += can_have_launched(call, row) ? 0 : 1;
    }
  }

  void decide_all() {
    for (std::size_t t = 0; t < rows_.size(); ++t)
      if (!rows_[t].driver.valid()) decide(store::ThreadId(t));
  }

  void decide(store::ThreadId thread) {
    Row& row = rows_[thread.index];
    const auto hosts = links_.processes.hosts(thread);
    std::int64_t own = 0;
    for (const Vote& vote : row.votes) own += vote.own;
    std::size_t fit = 0, fits = 0, unclear = 0;
    for (std::size_t h = 0; h < row.votes.size(); ++h) {
      const Vote& vote = row.votes[h];
      if (own > 0 && vote.own * 10 >= own * kClear && vote.contradicts * kMany <= vote.tested)
        row.driver = hosts[h];
      if (vote.tested > 0 && vote.contradicts * kNearlyNone <= vote.tested) {
        fit = h;
        ++fits;
      } else if (vote.contradicts * kMany < vote.tested) {
        ++unclear;
      }
    }
    if (own == 0 && fits == 1 && unclear == 0) row.driver = hosts[fit];
  }

  void take(CallRow call, ProcessId process, std::size_t row) {
    links_.driver[row] = process;
    links_.call_of[row] = call;
    links_.has_activity[call.index] = 1;
  }

  void link_to_driver(std::size_t row) {
    const ProcessId driver = driver_of(row);
    if (const CallRow call = driver.valid() ? call_of(driver, row) : CallRow{}; call.valid())
      take(call, driver, row);
  }

  void link(std::size_t row) {
    link_to_driver(row);
    if (links_.call_of[row].valid()) return;
    const ProcessId driver = driver_of(row);
    const auto hosts = hosts_of(row);
    links_.driver[row] = hosts.size() == 1 ? hosts.front() : driver;
    ProcessId owner;
    std::size_t owners = 0;
    for (const ProcessId host : hosts) {
      if (!call_of(host, row).valid()) continue;
      owner = host;
      ++owners;
    }
    // The row's own driver may have lost this launch, unless ids never repeat between processes.
    if (owners == 0 || (driver.valid() && !separate_)) return;
    const CallRow call = call_of(owner, row);
    // A launch of one kernel that has it: this one's own launch is not in the file.
    const bool taken =
        links_.has_activity[call.index] != 0 && links_.api_of(trace_, call) == Api::kKernelLaunch;
    if (owners == 1 && !taken) return take(call, owner, row);
    if (owners > 1) leave_open(row);
  }

  // Any of several launches: none of them lacks its kernel.
  void leave_open(std::size_t row) {
    links_.unclear[row] = 1;
    for (const ProcessId host : hosts_of(row))
      if (const CallRow call = call_of(host, row); call.valid())
        links_.has_activity[call.index] = 1;
  }

  const store::Trace& trace_;
  const IdTable& calls_;
  Links& links_;
  std::vector<Row> rows_;  // by thread
  bool separate_ = false;  // no id belongs to two processes
};

}  // namespace

void find_drivers(const store::Trace& trace, const IdTable& calls, Links& links) {
  Drivers(trace, calls, links).run();
}

}  // namespace culprit::run
