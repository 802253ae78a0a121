#include "profile/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "profile/kineto.h"
#include "profile/summary.h"
#include "profile/window.h"

namespace culprit::profile::detail {

Recorder::Recorder(Options options, std::unique_ptr<Arena> arena, TraceFile file)
    : options_(std::move(options)),
      arena_(std::move(arena)),
      file_(std::move(file)),
      began_(read_clocks()),
      writer_([this] { write_when_closed(); }) {}

void Recorder::start() {
  const std::lock_guard hold(lock_);
  set_mode(options_.warmup == 1 ? kArmed : kCounting);
}

namespace {

// Whoever left a span open will still write its end: such memory stays.
void keep_for_good(std::unique_ptr<Arena> arena, std::vector<std::unique_ptr<Log>> logs) {
  static std::mutex lock;
  static auto* const kept =
      new std::vector<std::pair<std::unique_ptr<Arena>, std::vector<std::unique_ptr<Log>>>>;
  const std::lock_guard hold(lock);
  kept->emplace_back(std::move(arena), std::move(logs));
}

}  // namespace

Recorder::~Recorder() {
  if (writer_.joinable()) finish();
  if (spans_left_open_) keep_for_good(std::move(arena_), std::move(logs_));
}

// With lock_ held.
void Recorder::set_mode(Mode next) {
  mode_ = next;
  mode.store(closed_ || paused_ ? kOff : next, std::memory_order_release);
}

// The step in front of the window sets up the threads' logs.
void Recorder::count_step() {
  const std::int64_t index = steps_.fetch_add(1, std::memory_order_relaxed);
  if (index + 1 < options_.warmup || index > options_.warmup) return;
  const std::lock_guard hold(lock_);
  set_mode(index < options_.warmup ? kArmed : kRecording);
}

void Recorder::end_recorded_step() {
  if (recorded_.fetch_add(1, std::memory_order_relaxed) + 1 == options_.steps) close();
}

void Recorder::close() {
  const std::lock_guard hold(lock_);
  if (closed_) return;
  closed_ = true;
  closed_at_ = now();
  set_mode(kOff);
  changed_.notify_all();
}

void Recorder::pause() {
  const std::lock_guard hold(lock_);
  paused_ = true;
  set_mode(mode_);
}

void Recorder::resume() {
  const std::lock_guard hold(lock_);
  paused_ = false;
  set_mode(mode_);
}

Report Recorder::finish() {
  close();
  {
    const std::lock_guard hold(lock_);
    finishing_ = true;
    changed_.notify_all();
  }
  if (writer_.joinable()) writer_.join();
  return report_;
}

Log* Recorder::join(std::string_view name) {
  const std::lock_guard hold(lock_);
  if (writing_ || logs_.size() == Log::kMost) return nullptr;
  auto log = std::make_unique<Log>();
  log->index = static_cast<std::uint32_t>(logs_.size());
  log->thread = gettid();
  log->name = name;
  log->open_block(*arena_);  // without one, the first span will see that the arena is empty
  logs_.push_back(std::move(log));
  return logs_.back().get();
}

void Recorder::rename(Log& log, std::string_view name) {
  const std::lock_guard hold(lock_);
  if (!writing_) log.name = name;
}

// With lock_ held.
bool Recorder::all_work_ended() const {
  std::uint64_t ended = 0, launched = 0;
  for (const auto& log : logs_) ended += log->ended.get();
  for (const auto& log : logs_) launched += log->launched.get();
  return ended == launched;
}

void Recorder::write_when_closed() {
  constexpr int kPatience = 200;  // of 5 ms, once the engine says that it is done
  constexpr std::chrono::milliseconds kPause(5);
  std::unique_lock hold(lock_);
  changed_.wait(hold, [this] { return closed_; });
  for (int waited = 0; !all_work_ended() && waited < kPatience; waited += finishing_ ? 1 : 0)
    changed_.wait_for(hold, kPause);
  writing_ = true;
  hold.unlock();
  report_ = write();
}

Report Recorder::write() {
  constexpr Nanos kApart = 5'000'000;
  const Nanos since = monotonic_now() - began_.monotonic;
  if (since < kApart) std::this_thread::sleep_for(std::chrono::nanoseconds(kApart - since));
  const Calibration calibration(began_, read_clocks());
  const Window window = look_at(logs_, closed_at_);
  spans_left_open_ = window.open > 0;
  Report report;
  report.lost = window.lost;
  if (window.steps.empty()) {
    report.error = why_empty(options_, window, steps_.load(std::memory_order_relaxed));
    return report;
  }
  report.events = write_kineto(options_, logs_, window, calibration, file_);
  if ((report.error = file_.commit())) return report;
  report.steps = static_cast<std::int64_t>(window.steps.size());
  report.trace = file_.path();
  report.summary = summarize(options_, logs_, window, calibration, report);
  return report;
}

}  // namespace culprit::profile::detail
