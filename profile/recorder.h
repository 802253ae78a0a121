// The one recorder of a process: which steps count, the logs of its threads, and the thread that
// writes the trace once the window has ended and all launched work has run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "culprit/profile.h"
#include "profile/clock.h"
#include "profile/log.h"
#include "profile/trace_file.h"

namespace culprit::profile::detail {

class Recorder {
 public:
  // `file` is open.
  Recorder(Options options, std::unique_ptr<Arena> arena, TraceFile file);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void start();  // once it is installed
  // A step begins that is in no other: what is recorded from here on.
  void count_step();
  void end_recorded_step();
  void close();  // the window, if it has not ended
  void pause();
  void resume();
  Report finish();

  Log* join(std::string_view name);  // a log for the calling thread; null: too many, or too late
  void rename(Log& log, std::string_view name);
  Arena& arena() { return *arena_; }

 private:
  void set_mode(Mode next);
  bool all_work_ended() const;
  void write_when_closed();
  Report write();

  const Options options_;
  std::unique_ptr<Arena> arena_;
  TraceFile file_;
  const Reading began_;

  std::mutex lock_;  // of all below, but for steps_ and recorded_
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Log>> logs_;
  Mode mode_ = kCounting;  // when not paused
  bool paused_ = false, closed_ = false, finishing_ = false;
  bool writing_ = false;  // logs_ changes no more
  Ticks closed_at_ = 0;
  bool spans_left_open_ = false;
  Report report_;

  std::atomic<std::int64_t> steps_{0}, recorded_{0};
  std::thread writer_;
};

// Makes `recorder` the one that spans go to; null: none.
void install(Recorder* recorder);

}  // namespace culprit::profile::detail
