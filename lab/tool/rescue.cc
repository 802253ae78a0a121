#include "lab/tool/rescue.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>

namespace culprit::lab {
namespace {

constexpr std::array kSignals{SIGTERM, SIGINT};
std::array<struct sigaction, kSignals.size()> before;  // what they did
std::atomic<sem_t*> waker{nullptr};                    // null: there is no Rescue
std::atomic<int> received{0};                          // 0: none

void on_signal(int signal) {
  const int saved = errno;
  int none = 0;
  sem_t* const called = waker.load();
  if (received.compare_exchange_strong(none, signal) && called != nullptr) sem_post(called);
  errno = saved;
}

}  // namespace

Rescue::Rescue(profile::Session& session) : session_(session) {
  sem_init(&called_, 0, 0);
  waiting_ = std::thread([this] { wait(); });
  received = 0;
  waker = &called_;
  struct sigaction ours = {};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &ours, &before[i]);
}

Rescue::~Rescue() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  waker = nullptr;
  sem_post(&called_);
  waiting_.join();
  sem_destroy(&called_);
}

void Rescue::wait() {
  while (sem_wait(&called_) != 0 && errno == EINTR) {
  }
  const int signal = received.load();
  if (signal == 0) return;
  const profile::Report report = session_.finish();
  const std::string kept =
      report.error ? fmt::format("nothing of the recording is kept: {}", report.error->text())
                   : fmt::format("{}: the {} steps recorded until then are kept", report.trace,
                                 report.steps);
  fmt::print(stderr, "culprit: ended by signal {}; {}\n", signal, kept);
  std::fflush(stderr);
  _exit(128 + signal);
}

}  // namespace culprit::lab
