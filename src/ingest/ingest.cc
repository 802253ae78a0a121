#include "ingest/ingest.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/source.h"
#include "ingest/event.h"
#include "ingest/joiner.h"
#include "ingest/nsight.h"

namespace culprit::ingest {
namespace {

constexpr std::int64_t kReserveAfter = 8;  // blocks seen before the table sizes are estimated

struct Slot {
  ParsedBlock parsed;
  ReadBuffer buffer;
};

// The block pipeline: each thread takes a free slot, fills it with the next block, parses it, and
// hands it in; whoever hands in the next block in order joins it and those that wait behind it.
class Loader {
 public:
  Loader(const std::string& path, const Options& options, Source& source, store::Trace& trace)
      : options_(options), source_(source), trace_(trace), joiner_(path, options, trace) {
    threads_ = options.threads > 0
                   ? options.threads
                   : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    threads_ = std::min(threads_, 64);
    slots_.resize(static_cast<std::size_t>(threads_) * 2 + 1);
    builders_.resize(static_cast<std::size_t>(threads_));
    for (RowBuilder& builder : builders_) builder.keep_places = options.places;
    for (Slot& slot : slots_) free_.push_back(&slot);
  }

  Status run() {
    {
      std::vector<std::jthread> helpers;
      for (int i = 1; i < threads_; ++i)
        helpers.emplace_back([this, i] { work(builders_[static_cast<std::size_t>(i)]); });
      work(builders_[0]);
    }
    if (error_) return *error_;
    return joiner_.finish(source_.fault());
  }

 private:
  void work(RowBuilder& builder) {
    while (Slot* slot = take_slot()) {
      if (slot->buffer.empty()) slot->buffer = ReadBuffer(options_.limits.block + kPadding + 1);
      char* text = slot->buffer.data();
      Result<Block> block = source_.next(text);
      if (!block.ok()) return stop(block.error());
      if (block->size == 0) return stop({});
      std::memset(text + block->size, 0, kPadding + 1);
      ParsedBlock& parsed = slot->parsed;
      parsed.block = *block;
      parsed.text = text;
      parsed.builder = &builder;
      parsed.batch.clear();
      const char* end = text + block->size;
      const char* first = find_event(text, text, end);
      parsed.stretch = parse_stretch(text, first, end, block->offset, builder, parsed.batch);
      parsed.stretch.first = first;
      builder.publish(parsed.batch);
      hand_in(slot);
    }
  }

  // Waits for a free slot; null when the work is over.
  Slot* take_slot() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_ || !free_.empty(); });
    if (over_) return nullptr;
    Slot* slot = free_.back();
    free_.pop_back();
    return slot;
  }

  void stop(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    over_ = true;
    if (error && !error_) error_ = std::move(error);
    changed_.notify_all();
  }

  void hand_in(Slot* slot) {
    std::unique_lock lock(mutex_);
    waiting_.push_back(slot);
    if (joining_) return;
    joining_ = true;
    while (Slot* next = take_next()) {
      lock.unlock();
      std::optional<Error> error;
      if (!failed_) error = join(next->parsed);
      lock.lock();
      if (error) {
        failed_ = over_ = true;
        error_ = std::move(error);
      }
      free_.push_back(next);
      changed_.notify_all();
    }
    joining_ = false;
  }

  Slot* take_next() {
    const auto it = std::find_if(waiting_.begin(), waiting_.end(), [&](const Slot* s) {
      return s->parsed.block.index == next_index_;
    });
    if (it == waiting_.end()) return nullptr;
    Slot* slot = *it;
    waiting_.erase(it);
    ++next_index_;
    return slot;
  }

  std::optional<Error> join(ParsedBlock& parsed) {
    if (Status status = joiner_.add(parsed); !status.ok()) return status.error();
    joined_ = parsed.block.offset + static_cast<std::int64_t>(parsed.block.size);
    reserve(joined_);
    if (!options_.progress) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_progress_ < options_.progress_interval) return std::nullopt;
    last_progress_ = now;
    if (options_.progress({source_.consumed(), source_.file_bytes()})) return std::nullopt;
    return Error{Error::Code::kInterrupted, "interrupted", "", ""};
  }

  // Growing a column by doubling would copy it and hold it twice: estimate its final size once from
  // the first blocks.
  void reserve(std::int64_t joined) {
    const auto enough = kReserveAfter * static_cast<std::int64_t>(options_.limits.block);
    if (reserved_ || joined < enough || source_.file_bytes() == 0) return;
    reserved_ = true;
    const double share = std::max(
        0.001, static_cast<double>(source_.consumed()) / static_cast<double>(source_.file_bytes()));
    const double text = source_.compression() == Compression::kNone
                            ? static_cast<double>(source_.file_bytes())
                            : static_cast<double>(joined) / share;
    const double scale = 1.1 * text / static_cast<double>(joined);
    std::apply(
        [&](auto&... table) {
          ((std::apply(
               [&](auto&... column) {
                 (column.reserve(
                      static_cast<std::size_t>(static_cast<double>(column.size()) * scale)),
                  ...);
               },
               table.columns())),
           ...);
        },
        trace_.tables());
  }

  const Options& options_;
  Source& source_;
  store::Trace& trace_;
  Joiner joiner_;
  int threads_ = 1;
  std::vector<Slot> slots_;
  std::vector<RowBuilder> builders_;

  std::mutex mutex_;  // guards what follows, up to joining_
  std::condition_variable changed_;
  std::vector<Slot*> free_, waiting_;
  std::int64_t next_index_ = 0;
  bool over_ = false, failed_ = false;
  std::optional<Error> error_;
  bool joining_ = false;

  // Only the thread that joins:
  std::int64_t joined_ = 0;
  bool reserved_ = false;
  std::chrono::steady_clock::time_point last_progress_ = std::chrono::steady_clock::now();
};

}  // namespace

Result<std::unique_ptr<store::Trace>> load(const std::string& path, const Options& options) {
  if (is_sqlite_file(path)) return load_nsight(path, options);
  TRY(auto source, open_source(path, options.limits.block));
  auto trace = std::make_unique<store::Trace>();
  trace->info.path = path;
  trace->info.format = "kineto-json";
  trace->info.file_bytes = source->file_bytes();
  Loader loader(path == "-" ? "standard input" : path, options, *source, *trace);
  if (Status status = loader.run(); !status.ok()) return status.error();
  if (trace->info.file_bytes == 0) trace->info.file_bytes = source->consumed();
  return trace;
}

}  // namespace culprit::ingest
