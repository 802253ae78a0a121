#include "ingest/excerpt.h"

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/source.h"
#include "ingest/event.h"
#include "ingest/key_predictor.h"
#include "ingest/strict.h"
#include "ingest/text.h"

namespace culprit::ingest {
namespace {

using Json = nlohmann::json;

struct Key {
  Field field;
  const char* name;
};
constexpr std::array<Key, 7> kOfEvent{{{Field::kPhase, "ph"},
                                       {Field::kCategory, "cat"},
                                       {Field::kName, "name"},
                                       {Field::kPid, "pid"},
                                       {Field::kTid, "tid"},
                                       {Field::kTs, "ts"},
                                       {Field::kDur, "dur"}}};
constexpr std::array<Key, 22> kOfArgs{{{Field::kExternal, "External id"},
                                       {Field::kCorrelation, "correlation"},
                                       {Field::kConnection, "connection_id"},
                                       {Field::kTaskType, "Task Type"},
                                       {Field::kDevice, "device"},
                                       {Field::kStream, "stream"},
                                       {Field::kGraphNode, "graph node id"},
                                       {Field::kKernel, "kernel"},
                                       {Field::kGrid, "grid"},
                                       {Field::kBlock, "block"},
                                       {Field::kBytes, "bytes"},
                                       {Field::kDims, "Input Dims"},
                                       {Field::kTypes, "Input type"},
                                       {Field::kCallFrom, "CallFrom"},
                                       {Field::kCollective, "Collective name"},
                                       {Field::kCollectiveDtype, "dtype"},
                                       {Field::kInElements, "In msg nelems"},
                                       {Field::kOutElements, "Out msg nelems"},
                                       {Field::kGroupSize, "Group size"},
                                       {Field::kGroup, "Process Group Name"},
                                       {Field::kGroupRanks, "Process Group Ranks"},
                                       {Field::kSequence, "Seq"}}};
static_assert(kOfEvent.size() + kOfArgs.size() == kFieldCount);

// The value of a field as JSON: as written where it is a value by itself, else as a clean string.
std::string value_of(const RawEvent& event, Field field) {
  const std::string_view raw = event[field];
  const bool is_text = field == Field::kPhase || field == Field::kCategory || field == Field::kName;
  if (!is_text && is_strict_json(raw)) return std::string(raw);
  std::string text(raw);
  if (event.is_escaped(field)) unescape(raw, text);
  return Json(cleaned(text)).dump();
}

template <std::size_t N>
void write_fields(const RawEvent& event, const std::array<Key, N>& keys, std::string& out) {
  bool first = true;
  for (const Key& key : keys) {
    if (!event.has(key.field)) continue;
    out += first ? "\"" : ", \"";
    out += key.name;
    out += "\": ";
    out += value_of(event, key.field);
    first = false;
  }
}

std::string written_anew(const RawEvent& event) {
  std::string args, out = "{";
  write_fields(event, kOfEvent, out);
  write_fields(event, kOfArgs, args);
  if (!args.empty()) out += ", \"args\": {" + args + "}";
  return out + "}";
}

// The text of a source from some byte on, as far as it has been read: a window that moves forward.
class Window {
 public:
  explicit Window(Source& source) : source_(source), block_(source.block_size()) {}

  // Makes `byte` the first of the window; empty where the text ends before it. Error: cannot read.
  Status begin_at(std::int64_t byte) {
    while (byte >= offset_ + static_cast<std::int64_t>(size_) && !ended_) {
      from_ = size_ = 0;
      text_.clear();
      source_.skip_to(byte);
      TRY([[maybe_unused]] const Ok read, extend());
    }
    const bool there = byte >= offset_ && byte < offset_ + static_cast<std::int64_t>(size_);
    from_ = there ? static_cast<std::size_t>(byte - offset_) : size_;
    return Ok{};
  }

  // One block more behind the window; ended() where there is none.
  Status extend() {
    text_.erase(0, from_);
    offset_ += static_cast<std::int64_t>(from_);
    size_ -= from_;
    from_ = 0;
    TRY(const Block block, source_.next(block_.data()));
    if (size_ == 0) offset_ = block.offset;
    ended_ = block.size == 0;
    text_.resize(size_);
    text_.append(block_.data(), block.size);
    size_ = text_.size();
    text_.append(kPadding + 1, '\0');
    return Ok{};
  }

  bool ended() const { return ended_; }
  bool empty() const { return from_ == size_; }
  const char* begin() const { return text_.data() + from_; }
  const char* end() const { return text_.data() + size_; }
  std::string_view text() const { return {begin(), size_ - from_}; }

 private:
  Source& source_;
  ReadBuffer block_;
  std::string text_;  // with its padding
  std::size_t from_ = 0, size_ = 0;
  std::int64_t offset_ = 0;  // of text_[0]
  bool ended_ = false;
};

Error changed(const std::string& path) {
  return {.code = Error::Code::kBadInput,
          .what = "changed while it was read",
          .where = path,
          .hint = "wait until it is written, then ask again",
          .note_code = {}};
}

}  // namespace

Result<Excerpt> copy_events(const std::string& path, std::span<const std::int64_t> bytes,
                            const Options& options,
                            const std::function<void(std::string_view json)>& take) {
  TRY(const std::unique_ptr<Source> source, open_source(path, options.limits.block));
  Window window(*source);
  KeyPredictor keys;
  RawEvent event;
  Excerpt excerpt;
  auto last_progress = std::chrono::steady_clock::now();
  for (const std::int64_t byte : bytes) {
    TRY([[maybe_unused]] const Ok placed, window.begin_at(byte));
    if (window.empty() || *window.begin() != '{') return changed(path);
    ++excerpt.events;
    for (;;) {
      if (const std::size_t size = strict_json_size(window.text()); size > 0) {
        take(window.text().substr(0, size));
        break;
      }
      const EventEnd parsed = parse_event(window.begin(), window.end(), event, keys);
      if (parsed.status == Parsed::kOk) {
        ++excerpt.rewritten;
        take(written_anew(event));
        break;
      }
      if (parsed.status != Parsed::kIncomplete || window.ended()) return changed(path);
      TRY([[maybe_unused]] const Ok more, window.extend());
    }
    const auto now = std::chrono::steady_clock::now();
    if (!options.progress || now - last_progress < options.progress_interval) continue;
    last_progress = now;
    if (!options.progress({source->consumed(), source->file_bytes()}))
      return Error{Error::Code::kInterrupted, "interrupted", "", ""};
  }
  return excerpt;
}

}  // namespace culprit::ingest
