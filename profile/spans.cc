// What spans do while they are recorded. The clock is read last when one begins and first when it
// ends, so that a span holds as little of its own recording as can be.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "profile/log.h"
#include "profile/recorder.h"

namespace culprit::profile {
namespace detail {

constinit std::atomic<std::uint32_t> mode{kOff};

namespace {

constexpr std::uint64_t kOnlySetUp = ~std::uint64_t{0};  // a ticket in front of the window

constinit std::atomic<Recorder*> current{nullptr};
constinit std::atomic<std::uint64_t> session{0};  // of `current`; 0: none
constinit std::uint64_t last_session = 0;

struct Mine {
  std::uint64_t session = 0;  // whose log it is
  Log* log = nullptr;
  int steps = 0;       // open
  char name[32] = "";  // as name_thread gave it
};
constinit thread_local Mine mine;

Log* join(std::uint64_t number) {
  Recorder* recorder = current.load(std::memory_order_acquire);
  mine.session = number;
  mine.log = number != 0 && recorder != nullptr ? recorder->join(mine.name) : nullptr;
  return mine.log;
}

Log* my_log() {
  const std::uint64_t number = session.load(std::memory_order_acquire);
  return mine.session == number ? mine.log : join(number);
}

// A record that is not published yet; null: the arena is empty, and the window has ended.
Record* add(Log& log, Kind kind, Name name, std::size_t tail_bytes) {
  Recorder* recorder = current.load(std::memory_order_relaxed);
  if (recorder == nullptr) return nullptr;
  const std::size_t size = sizeof(Record) + tail_bytes;
  std::byte* at = log.take(size, recorder->arena());
  if (at == nullptr) {
    log.refused.add(1);
    recorder->close();
    return nullptr;
  }
  auto* record = new (at) Record;
  record->name = name;
  record->size = static_cast<std::uint32_t>(size);
  record->kind = kind;
  return record;
}

Place begin(Log& log, Record* record) {
  record->begin = now();
  log.publish();
  return {record, &log};
}

bool in_window() { return mode.load(std::memory_order_relaxed) == kRecording; }

template <class Tail>
Place begin_work(Ticket ticket, Kind kind, Name name, const Tail& work) {
  Log* log = my_log();
  if (log == nullptr || ticket.id == kOnlySetUp) return {};
  Record* record = add(*log, kind, name, sizeof(Tail));
  if (record == nullptr) {
    log->ended.add(1);
    return {};
  }
  record->id = ticket.id;
  new (tail<Tail>(record)) Tail(work);
  return begin(*log, record);
}

}  // namespace

void install(Recorder* recorder) {
  if (recorder == nullptr) session.store(0, std::memory_order_release);
  current.store(recorder, std::memory_order_release);
  if (recorder != nullptr) session.store(++last_session, std::memory_order_release);
}

Place begin_step(Mark mark, Name name, bool& counted) noexcept {
  Recorder* recorder = current.load(std::memory_order_acquire);
  if (recorder == nullptr) return {};
  counted = true;
  const bool inner = mine.steps++ > 0;
  if (!inner) recorder->count_step();
  Log* log = recording() ? my_log() : nullptr;
  if (log == nullptr || !in_window()) return {};
  Record* record = add(*log, inner ? Kind::kMark : Kind::kStep, name, sizeof(StepTail));
  if (record == nullptr) return {};
  new (tail<StepTail>(record)) StepTail(mark);
  return begin(*log, record);
}

void end_step(Place place) noexcept {
  --mine.steps;
  if (place.record == nullptr) return;
  const bool counts = place.record->kind == Kind::kStep;
  end(place);
  Recorder* recorder = current.load(std::memory_order_acquire);
  if (counts && recorder != nullptr) recorder->end_recorded_step();
}

OpenOp open_op(const Call& call, std::size_t inputs, std::size_t input_bytes) noexcept {
  constexpr std::size_t kMostBytes = 4096;
  Log* log = my_log();
  if (log == nullptr || !in_window()) return {};
  if (input_bytes > kMostBytes) inputs = input_bytes = 0;
  Record* record = add(*log, Kind::kOp, call.name, sizeof(OpTail) + input_bytes);
  if (record == nullptr) return {};
  auto* where = new (tail<OpTail>(record)) OpTail(call.where);
  record->count = static_cast<std::uint32_t>(inputs);
  record->id = log->next_id();
  record->parent = log->op;
  log->op = record->id;
  return {{record, log}, inputs > 0 ? reinterpret_cast<std::byte*>(where + 1) : nullptr};
}

void start(Place place) noexcept { begin(*place.log, place.record); }

Place begin_launch(Name call, std::uint32_t works, Ticket& ticket) noexcept {
  Log* log = my_log();
  if (log == nullptr) return {};
  if (!in_window()) {
    ticket.id = kOnlySetUp;
    return {};
  }
  Record* record = add(*log, Kind::kLaunch, call, 0);
  if (record == nullptr) return {};
  record->id = log->next_id();
  record->parent = log->op;
  record->count = works;
  ticket.id = record->id;
  log->launched.add(works);
  return begin(*log, record);
}

Place begin_wait(Name call) noexcept {
  Log* log = my_log();
  if (log == nullptr || !in_window()) return {};
  Record* record = add(*log, Kind::kWait, call, 0);
  if (record == nullptr) return {};
  record->id = log->next_id();
  record->parent = log->op;
  return begin(*log, record);
}

Place begin_kernel(Ticket ticket, Name name, Work work) noexcept {
  return begin_work(ticket, Kind::kKernel, name, work);
}

Place begin_copy(Ticket ticket, Name what, Work work) noexcept {
  return begin_work(ticket, Kind::kCopy, what, work);
}

Place begin_collective(Ticket ticket, Name name, Message message, Work work) noexcept {
  return begin_work(ticket, Kind::kCollective, name, CollectiveTail{work, message});
}

void end(Place place) noexcept {
  place.record->end.store(now(), std::memory_order_release);
  if (place.record->kind == Kind::kOp)
    place.log->op = place.record->parent;
  else if (is_work(place.record->kind))
    place.log->ended.add(1);
}

}  // namespace detail

Name intern(std::string_view text) {
  static std::mutex lock;
  static auto* kept = new std::set<std::string, std::less<>>;  // never freed: names point into it
  const std::lock_guard hold(lock);
  auto at = kept->find(text);
  if (at == kept->end()) at = kept->emplace(text).first;
  return Name::lasting(*at);
}

void name_thread(std::string_view name) {
  using detail::mine;
  const std::size_t size = std::min(name.size(), sizeof mine.name - 1);
  std::memcpy(mine.name, name.data(), size);
  mine.name[size] = '\0';
  detail::Log* log = detail::my_log();
  detail::Recorder* recorder = detail::current.load(std::memory_order_acquire);
  if (log != nullptr && recorder != nullptr) recorder->rename(*log, mine.name);
}

}  // namespace culprit::profile
