#include "ingest/joiner.h"

#include <algorithm>

#include "base/text.h"
#include "ingest/event.h"

namespace culprit::ingest {
namespace {

// parse_event and its kin read past the end: see scan.h.
constexpr char kNoText[kPadding + 1] = {};
void pad(std::string& text) { text.append(kPadding + 1, '\0'); }
void unpad(std::string& text) { text.resize(text.size() - kPadding - 1); }

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

Status Joiner::add(ParsedBlock& parsed) {
  text_bytes_ += static_cast<std::int64_t>(parsed.block.size);
  append_names(parsed.batch, *parsed.builder, threads_, trace_);
  if (mode_ == Mode::kHead) return add_head(parsed);
  if (mode_ == Mode::kEvents) {
    add_events(parsed);
  } else if (outer_.size() < limits_.head) {
    outer_.append(parsed.text, parsed.block.size);
  }
  return Ok{};
}

Status Joiner::add_head(ParsedBlock& parsed) {
  if (outer_.empty()) {
    if (Error e = refuse_by_content(path_, {parsed.text, parsed.block.size}); !e.what.empty())
      return e;
  }
  const std::size_t before = outer_.size();
  outer_.append(parsed.text, parsed.block.size);
  if (outer_.size() < retry_at_) return Ok{};
  pad(outer_);
  const Document::Head head = document_.read_head({outer_.data(), outer_.size() - kPadding - 1});
  unpad(outer_);
  const bool undecided = head == Document::Head::kNeedMore || document_.damaged_at();
  if (head != Document::Head::kEvents && undecided && outer_.size() < limits_.head) {
    retry_at_ = std::min(limits_.head, outer_.size() * 2);
    return Ok{};
  }
  retry_at_ = 0;
  if (head != Document::Head::kEvents) return no_events(head);
  mode_ = Mode::kEvents;
  if (document_.events_at() <= before) {
    // The array opened in an earlier block, where its keys could not be told from damage yet, or at
    // its end: parse from there.
    carry_ += outer_.substr(document_.events_at(), before - document_.events_at());
    carry_offset_ = static_cast<std::int64_t>(document_.events_at());
    parse_carried(parsed);
  } else {
    const char* events = parsed.text + (document_.events_at() - before);
    if (skip_space(events) == parsed.stretch.first) {
      take(parsed);
    } else {
      parse_text(events - 1, events, parsed.text + parsed.block.size,
                 static_cast<std::int64_t>(document_.events_at()) - 1);
    }
  }
  if (mode_ == Mode::kEvents) outer_.clear();
  return Ok{};
}

void Joiner::add_events(ParsedBlock& parsed) {
  const char* end = parsed.text + parsed.block.size;
  const bool guessed = parsed.stretch.first != end;
  const bool found = guessed && (lost_ ? !carries() : retry_at_ == 0 && proves(parsed));
  if (found) {
    lost_ = false;
    take(parsed);
  } else {
    parse_carried(parsed);
  }
}

// Does the carried text up to the block's guess hold whole events and nothing else? Then their rows
// are in the trace.
bool Joiner::proves(const ParsedBlock& parsed) {
  const std::size_t carried = carry_.size();
  carry_.append(parsed.text, parsed.stretch.first);
  const std::size_t size = carry_.size();
  pad(carry_);
  batch_.clear();
  const char* end = carry_.data() + size;
  const Stretch stretch =
      parse_stretch(carry_.data(), carry_.data() + 1, end, carry_offset_ - 1, builder_, batch_);
  builder_.publish(batch_);
  append_names(batch_, builder_, threads_, trace_);
  carry_.resize(carried);
  if (stretch.closed || (stretch.stop != end && !stretch.lost)) {
    return false;
  }
  append_rows(batch_, builder_);
  return true;
}

void Joiner::append_rows(Batch& batch, RowBuilder& builder) {
  append(batch, builder, trace_, faults_);
  commas_ += batch.commas;
}

void Joiner::take(ParsedBlock& parsed) {
  append_rows(parsed.batch, *parsed.builder);
  const char* end = parsed.text + parsed.block.size;
  continue_from(parsed.text, parsed.stretch, end,
                parsed.block.offset + (parsed.stretch.stop - parsed.text));
}

// Slow path: the carried text and the whole block, one after the other, from the last proven event
// on; where that was lost, from the next one that can be found.
void Joiner::parse_carried(ParsedBlock& parsed) {
  carry_.append(parsed.text, parsed.block.size);
  if (carry_.size() < retry_at_) return;
  std::string text;
  text.swap(carry_);
  const std::int64_t offset = carry_offset_ - 1;
  const std::size_t size = text.size();
  pad(text);
  const char* begin = text.data();
  const char* end = begin + size;
  const char* p = lost_ ? find_event(begin, begin + 1, end) : begin + 1;
  if (lost_ && p >= end) {
    retry_at_ = 0;
    const char* kept = find_cut_event(begin, begin + 1, end);
    set_carry(begin, kept, end, offset + (kept - begin));
  } else {
    parse_text(begin, p, end, offset);
  }
}

void Joiner::parse_text(const char* begin, const char* p, const char* end, std::int64_t offset) {
  batch_.clear();
  const Stretch stretch = parse_stretch(begin, p, end, offset, builder_, batch_);
  builder_.publish(batch_);
  append_names(batch_, builder_, threads_, trace_);
  append_rows(batch_, builder_);
  continue_from(begin, stretch, end, offset + (stretch.stop - begin));
}

void Joiner::continue_from(const char* begin, const Stretch& stretch, const char* end,
                           std::int64_t stop_offset) {
  lost_ = stretch.lost;
  retry_at_ = 0;
  if (stretch.closed) {
    mode_ = Mode::kTail;
    outer_.assign(stretch.stop + 1, end);
    tail_offset_ = stop_offset + 1;
    carry_.clear();
    return;
  }
  set_carry(begin, stretch.stop, end, stop_offset);
}

// Carries [from, to) of the text that begins at `begin`.
void Joiner::set_carry(const char* begin, const char* from, const char* to, std::int64_t offset) {
  const char* before = from;
  while (before > begin && static_cast<unsigned char>(before[-1]) <= ' ') --before;
  carry_.assign(1, before > begin ? before[-1] : ' ');
  carry_.append(from, to);
  carry_offset_ = offset;
  if (carry_.size() > limits_.event) {
    const auto size = static_cast<std::int64_t>(carry_.size()) - 1;
    trace_.notes.add({"limit", store::Severity::kDataLoss, 1, carry_offset_, trace_.info.events, "",
                      "an event longer than " + mebibytes(limits_.event) +
                          ", or a lost quote or bracket, was left out"});
    ++trace_.info.events;
    carry_.resize(1);
    carry_offset_ += size;
    lost_ = true;
  } else if (carry_.size() > limits_.block) {
    retry_at_ = carry_.size() * 2;
  }
}

Error Joiner::no_events(Document::Head head) const {
  Error e{Error::Code::kBadInput, "not a trace: no \"traceEvents\" in it", path_,
          "pass the .json or .json.gz that torch.profiler wrote"};
  e.note_code = "not-a-trace";
  if (head == Document::Head::kNone && document_.has("nodes") && document_.has("schema")) {
    e.code = Error::Code::kUnsupported;
    e.what = "a PyTorch execution trace (operators and data flow, no times of the device)";
    e.hint = "record a profiler trace: torch.profiler, or the server's /start_profile";
  } else if (head == Document::Head::kNotJson) {
    e.what = "not a trace: the JSON breaks off or is damaged before any \"traceEvents\"";
  } else if (head == Document::Head::kNeedMore) {
    e.what = text_bytes_ < static_cast<std::int64_t>(limits_.head)
                 ? "the file ends before any \"traceEvents\""
                 : "no \"traceEvents\" in the first " + mebibytes(limits_.head);
  }
  return e;
}

Status Joiner::finish(const std::optional<SourceFault>& fault) {
  trace_.info.text_bytes = text_bytes_;
  if (mode_ == Mode::kHead && retry_at_ > 0) {
    ParsedBlock nothing;
    RowBuilder unused;
    nothing.text = kNoText;
    nothing.builder = &unused;
    retry_at_ = 0;
    if (Status status = add_head(nothing); !status.ok()) return status;
  }
  if (mode_ == Mode::kHead) {
    if (text_bytes_ == 0 && !fault) {
      Error e{Error::Code::kBadInput, "the file is empty", path_, "record the trace again"};
      e.note_code = "empty";
      return e;
    }
    Error e = no_events(document_.damaged_at() && !fault ? Document::Head::kNotJson
                                                         : Document::Head::kNeedMore);
    if (fault) e.what += ": " + fault->what;
    const bool damaged = document_.damaged_at() && !fault;
    e.note_code = damaged                                   ? "not-a-trace"
                  : fault && fault->code != "trailing-data" ? fault->code
                                                            : "truncated";
    return e;
  }
  if (mode_ == Mode::kEvents && retry_at_ > 0) {
    ParsedBlock nothing;
    RowBuilder unused;
    nothing.text = kNoText;
    nothing.builder = &unused;
    retry_at_ = 0;
    parse_carried(nothing);
  }
  if (const auto damaged = document_.damaged_at()) {
    trace_.notes.add({"bad-string",
                      store::Severity::kWarning,
                      1,
                      static_cast<std::int64_t>(*damaged),
                      {},
                      "header",
                      "the text in front of the events is damaged and was skipped from byte " +
                          text::count(static_cast<std::int64_t>(*damaged)) +
                          " on: device and rank may be unknown"});
  }
  add_end_notes(fault);
  document_.describe(trace_.info, trace_.notes);
  if (builder_.keep_places) document_.keep(trace_.places);
  add_fault_notes();
  add_comma_note();
  if (trace_.info.autograd_events > 0 && trace_.device.size() == 0 && trace_.calls.size() == 0) {
    Error e{Error::Code::kUnsupported,
            "an export of torch.autograd.profiler from before Kineto (PyTorch < 1.8): it links no "
            "launch to a kernel",
            path_, "record with torch.profiler.profile and its export_chrome_trace"};
    e.note_code = "unsupported";
    return e;
  }
  return Ok{};
}

// How the text ended, where that is not as it should.
void Joiner::add_end_notes(const std::optional<SourceFault>& fault) {
  store::Notes& notes = trace_.notes;
  if (mode_ == Mode::kEvents) {
    const bool named = fault && fault->code != "trailing-data";
    notes.add({named ? fault->code : "truncated", store::Severity::kDataLoss, 1, carry_offset_,
               trace_.info.events, "",
               "the file ends inside the event array" +
                   (fault ? " (" + fault->what + ")" : std::string()) +
                   ": what came later is missing"});
    return;
  }
  pad(outer_);
  const Document::Tail tail = document_.read_tail({outer_.data(), outer_.size() - kPadding - 1});
  const std::int64_t byte = tail_offset_ + static_cast<std::int64_t>(document_.tail_end());
  if (fault) add_fault_behind_events(*fault, tail != Document::Tail::kTruncated);
  switch (tail) {
    case Document::Tail::kComplete:
      break;
    case Document::Tail::kTruncated:
      if (!fault || fault->code == "trailing-data")
        notes.add({"truncated",
                   store::Severity::kWarning,
                   1,
                   text_bytes_,
                   {},
                   "",
                   "the file ends behind the events: only header keys are missing"});
      break;
    case Document::Tail::kSecondArray:
      notes.add({"duplicate-key",
                 store::Severity::kDataLoss,
                 1,
                 byte,
                 {},
                 "",
                 "a second \"traceEvents\" follows in the same document; the events of the first "
                 "one alone were read"});
      break;
    case Document::Tail::kSecondDocument:
      notes.add({"trailing-data",
                 store::Severity::kDataLoss,
                 1,
                 byte,
                 {},
                 "",
                 "another document follows the first one (two traces in one file?) and was not "
                 "read: give each trace a file "
                 "of its own"});
      break;
    case Document::Tail::kTrailing:
      notes.add({"trailing-data",
                 store::Severity::kWarning,
                 1,
                 byte,
                 {},
                 "",
                 "text follows the end of the trace and was not read"});
      break;
  }
}

// A fault of the source where every event was read. `complete`: so was the document.
void Joiner::add_fault_behind_events(const SourceFault& fault, bool complete) {
  store::Note note{fault.code, store::Severity::kWarning, 1, text_bytes_, {}, "", fault.what};
  if (fault.code == "compression-damaged") {
    note.severity = store::Severity::kDataLoss;
    note.message += ": values that were read may be wrong";
  } else if (fault.code == "trailing-data") {
    note.message += " and were not read";
  } else {
    note.message = "the file ends behind the events (" + fault.what + "): " +
                   (complete ? "nothing of the trace is missing" : "only header keys are missing");
  }
  trace_.notes.add(std::move(note));
}

// Commas too few or too many between the events. Where text was left out, nobody can tell.
void Joiner::add_comma_note() {
  const std::int64_t events = trace_.info.events;
  const std::int64_t right = std::max<std::int64_t>(events - 1, 0);
  if (mode_ != Mode::kTail || commas_ == right || trace_.notes.has("limit") ||
      faults_[static_cast<std::size_t>(Fault::kBadEvent)].count > 0)
    return;
  const bool few = commas_ < right;
  trace_.notes.add({"bad-comma",
                    store::Severity::kInfo,
                    few ? right - commas_ : commas_ - right,
                    {},
                    {},
                    "",
                    std::string(few ? "commas are missing between"
                                    : "there are commas too many between or behind") +
                        " events, which is no JSON; every event was read"});
}

void Joiner::add_fault_notes() {
  struct Wording {
    const char* code;
    store::Severity severity;
    const char* message;
  };
  constexpr Wording wordings[kFaultCount] = {
      {"bad-event", store::Severity::kDataLoss,
       "text that is no event was left out, with the events in it; counted by place"},
      {"bad-string", store::Severity::kWarning,
       "events have strings with unescaped quotes or backslashes, control characters or invalid "
       "UTF-8; they were read as far as "
       "possible"},
      {"bad-number", store::Severity::kWarning,
       "values that are no numbers (inf, NaN, N/A), or beyond 64 bits or any real time, count as "
       "absent; an event "
       "without a time is left out"},
      {"negative-duration", store::Severity::kWarning,
       "events that end before they begin count as 0 ns long"},
      {"duplicate-key", store::Severity::kWarning,
       "events name a key twice; the last value counts"},
  };
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const FaultCount& f = faults_[i];
    if (f.count == 0) continue;
    trace_.notes.add({wordings[i].code, wordings[i].severity, f.count, f.byte, f.event, "",
                      std::string(wordings[i].message) + ": " + text::count(f.count) +
                          (f.count > 1 ? ", the first at byte " : ", at byte ") +
                          text::count(f.byte) + " (event " + text::count(f.event) + ")"});
  }
}

}  // namespace culprit::ingest
