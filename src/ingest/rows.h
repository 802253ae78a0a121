// Rows: RawEvents turned into table rows. A RowBuilder belongs to one thread and keeps its own
// names and threads; a Batch holds the rows of one stretch of text in those local ids; append()
// moves a batch into the Trace, remapping ids. Batches appended in text order give the same Trace
// whatever thread built them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/event.h"
#include "ingest/key_predictor.h"
#include "store/trace.h"

namespace culprit::ingest {

// Faults of one stretch, counted and located; turned into notes at the end, when their final counts
// are known.
enum class Fault : std::uint8_t {
  kBadEvent,
  kBadString,
  kBadNumber,
  kNegativeDuration,
  kDuplicateKey,
};
inline constexpr std::size_t kFaultCount = 5;

struct FaultCount {
  std::int64_t count = 0;
  std::int64_t byte = -1;   // first, absolute
  std::int64_t event = -1;  // first, counted from the batch's first event
};

struct Batch {
  store::Tables tables;  // local ids
  std::vector<std::string_view>
      new_strings;  // local strings made since the builder's last batch, in id order
  std::vector<store::Thread> new_threads;  // likewise, with local string ids
  std::int64_t events = 0;
  std::int64_t commas = 0;  // between them
  std::int64_t memory = 0, flows = 0, counters = 0, metadata = 0, others = 0;
  std::int64_t autograd = 0;  // complete events of the pre-Kineto autograd export
  bool hip = false;
  store::CategoryCounts unread;  // complete events of categories that are not read
  std::array<FaultCount, kFaultCount> faults{};
  store::Places places;  // empty unless the builder keeps them
  void clear();
  void fault(Fault fault, std::int64_t byte, std::int64_t count = 1);
};

// The id of a thread among those seen so far; a new one is added to `threads`.
class ThreadIndex {
 public:
  store::ThreadId id_of(const store::Thread& thread, std::vector<store::Thread>& threads);

 private:
  struct Hash {
    std::size_t operator()(const store::Thread& t) const {
      return (std::size_t{t.pid.index} << 32 | t.tid.index) * 0x9e3779b97f4a7c15U + t.rank.index;
    }
  };
  std::unordered_map<store::Thread, store::ThreadId, Hash> ids_;
};

class RowBuilder {
 public:
  // What an event's category makes of it.
  // The spellings of all eras and vendors: docs/trace-support.md.
  enum class Kind : std::uint8_t {
    kOther,
    kFrame,
    kOp,
    kCall,
    kKernel,
    kMemcpy,
    kMemset,
    kHostMark,
    kDeviceMark,
    kSync
  };
  // Adds one parsed event that begins at `byte` of the text.
  void add(const RawEvent& event, std::int64_t byte, Batch& batch);
  // An event that could not be parsed.
  void add_bad(std::int64_t byte, Batch& batch);
  // Hands the strings and threads made since the last call to the batch.
  void publish(Batch& batch);

  KeyPredictor keys;  // what this thread's parser has learned
  bool keep_places = false;

  // Written by append_names() only: local id -> id in the Trace.
  std::vector<store::StringId> string_to_trace;
  std::vector<store::ThreadId> thread_to_trace;

 private:
  struct CachedThread {
    std::string pid, tid;
    store::ThreadId id;
    bool odd = false;      // pid or tid begins like a number and is none
    bool unclean = false;  // pid or tid is not shown as written
  };
  store::StringId text(const RawEvent& event, Field field);
  store::StringId intern(std::string_view text);
  store::StringId clean_form(store::StringId id);
  store::StringId frame_name(const RawEvent& event);
  store::ThreadId thread(const RawEvent& event, Batch& batch, std::int64_t byte);
  void remember_thread(CachedThread& cached, std::string_view pid, std::string_view tid);
  std::int64_t id(const RawEvent& event, Field field, Batch& batch, std::int64_t byte);
  std::int64_t correlation(const RawEvent& event, Batch& batch, std::int64_t byte);
  void add_complete(const RawEvent& event, std::int64_t byte, Batch& batch);
  struct Times {
    Nanos begin, dur;
  };
  void add_row(const RawEvent& event, Kind kind, Times times, std::int64_t byte, Batch& batch);
  void place_row(Kind kind, std::int64_t byte, Batch& batch);
  void place_other(const RawEvent& event, store::OtherKind kind, std::int64_t byte, Batch& batch);
  void add_device_columns(const RawEvent& event, Kind kind, std::int64_t byte, Batch& batch);
  std::uint32_t add_collective(const RawEvent& event, std::int64_t byte, Batch& batch);

  store::Strings strings_;
  std::size_t checked_ = 0;             // strings known to be clean text
  std::vector<store::StringId> clean_;  // id of the clean form; empty while every string is clean
  std::size_t published_strings_ = 0, published_threads_ = 0;
  std::vector<store::Thread> threads_;
  ThreadIndex thread_ids_;
  std::array<CachedThread, 32> cache_;
  std::string scratch_;
  bool bad_string_ = false;  // the event being added has a string that is not shown as written
};

// Maps the names and threads that `builder` published with this batch to ids of the trace. Must be
// done for every batch, in the order of publishing, also for one whose rows are dropped: later
// batches use them.
void append_names(const Batch& batch, RowBuilder& builder, ThreadIndex& threads,
                  store::Trace& trace);
// The rows, after append_names; the batch's counts are added to the trace's and to `faults`.
// Batches must come in text order.
void append(Batch& batch, RowBuilder& builder, store::Trace& trace,
            std::array<FaultCount, kFaultCount>& faults);

}  // namespace culprit::ingest
