// Rescue: while it lives, SIGTERM and SIGINT end the process only after the recording's file is written,
// with the steps that were whole by then. So of a run of ranks that loses one, and is ended by mpirun,
// the others' traces are kept. One at a time. The process ends as the signal would have ended it: with
// 128 + its number, and a line that says how much was kept.
#pragma once

#include <semaphore.h>

#include <thread>

#include "culprit/profile.h"

namespace culprit::lab {

class Rescue {
 public:
  // Nobody else may finish the session while this lives.
  explicit Rescue(profile::Session& session);
  ~Rescue();  // signals do what they did before
  Rescue(const Rescue&) = delete;
  Rescue& operator=(const Rescue&) = delete;

 private:
  void wait();

  profile::Session& session_;
  sem_t called_;  // posted by the handler, and at the end
  std::thread waiting_;
};

}  // namespace culprit::lab
