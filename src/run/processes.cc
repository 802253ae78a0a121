#include "run/processes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace culprit::run {
namespace {

std::vector<std::uint8_t> threads_of(const std::vector<store::ThreadId>& rows,
                                     std::size_t threads) {
  std::vector<std::uint8_t> seen(threads, 0);
  for (const store::ThreadId thread : rows) seen[thread.index] = 1;
  return seen;
}

}  // namespace

Processes::Processes(const store::Trace& trace) {
  const std::size_t threads = trace.threads.size();
  std::map<std::pair<store::StringId, store::StringId>, ProcessId> known;  // rank, pid
  std::map<store::StringId, std::uint32_t> labels;
  for (const store::Thread& thread : trace.threads) {
    const auto [process, fresh] =
        known.try_emplace({thread.rank, thread.pid}, ProcessId(pids_.size()));
    if (fresh) pids_.push_back(thread.pid);
    of_thread_.push_back(process->second);
    const auto [label, first] =
        labels.try_emplace(thread.rank, static_cast<std::uint32_t>(labels_.size()));
    if (first) labels_.push_back({thread.rank, {}});
    label_of_thread_.push_back(label->second);
  }
  std::vector<std::uint8_t> is_host(pids_.size(), 0);
  const auto add_hosts = [&](const std::vector<std::uint8_t>& seen, const auto& wanted) {
    for (std::size_t t = 0; t < threads; ++t) {
      const std::uint32_t label = label_of_thread_[t];
      std::uint8_t& host = is_host[of_thread_[t].index];
      if (seen[t] == 0 || host != 0 || !wanted(label)) continue;
      host = 1;
      labels_[label].hosts.push_back(of_thread_[t]);
    }
  };
  add_hosts(threads_of(trace.calls.thread, threads), [](std::uint32_t) { return true; });
  std::vector<std::uint8_t> silent;  // labels without calls
  for (const Label& label : labels_) silent.push_back(label.hosts.empty() ? 1 : 0);
  const std::vector<std::uint8_t> operators = threads_of(trace.ops.thread, threads);
  has_operators_.resize(pids_.size(), 0);
  for (std::size_t t = 0; t < threads; ++t)
    if (operators[t] != 0) has_operators_[of_thread_[t].index] = 1;
  add_hosts(operators, [&](std::uint32_t label) { return silent[label] != 0; });
  shared_ = std::any_of(labels_.begin(), labels_.end(),
                        [](const Label& label) { return label.hosts.size() > 1; });
}

}  // namespace culprit::run
