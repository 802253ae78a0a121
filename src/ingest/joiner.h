// Joiner: takes the parsed blocks in text order, proves each guess of a first event (the text
// between the last proven event and the guess must parse to exactly that point), parses again what
// was guessed wrong, and keeps the text that blocks cut apart. Cost: one event per block is parsed
// twice; an event longer than a block is parsed O(log) times.
#pragma once

#include <string>

#include "base/source.h"
#include "ingest/document.h"
#include "ingest/ingest.h"
#include "ingest/stretch.h"

namespace culprit::ingest {

// One block with what a thread made of it. The text is followed by a zero byte and padding.
struct ParsedBlock {
  Block block;
  const char* text = nullptr;
  Stretch stretch;
  Batch batch;
  RowBuilder* builder = nullptr;
};

class Joiner {
 public:
  Joiner(const std::string& path, const Options& options, store::Trace& trace)
      : path_(path), limits_(options.limits), trace_(trace) {
    builder_.keep_places = options.places;
  }
  // Errors: the input is no trace at all. Then nothing further may be added.
  Status add(ParsedBlock& parsed);
  // After the last block. `fault`: why the text ended early, if it did.
  Status finish(const std::optional<SourceFault>& fault);

 private:
  enum class Mode : std::uint8_t { kHead, kEvents, kTail };
  Status add_head(ParsedBlock& parsed);
  void add_events(ParsedBlock& parsed);
  void append_rows(Batch& batch, RowBuilder& builder);
  void take(ParsedBlock& parsed);
  bool proves(const ParsedBlock& parsed);
  void parse_carried(ParsedBlock& parsed);
  void parse_text(const char* begin, const char* p, const char* end, std::int64_t offset);
  void continue_from(const char* begin, const Stretch& stretch, const char* end,
                     std::int64_t stop_offset);
  bool carries() const { return carry_.size() > 1; }
  void set_carry(const char* begin, const char* from, const char* to, std::int64_t offset);
  Error no_events(Document::Head head) const;
  void add_end_notes(const std::optional<SourceFault>& fault);
  void add_fault_behind_events(const SourceFault& fault, bool complete);
  void add_comma_note();
  void add_fault_notes();

  const std::string path_;
  const Limits limits_;
  store::Trace& trace_;
  Document document_;
  Mode mode_ = Mode::kHead;
  std::string outer_;  // text in front of (kHead) or behind (kTail) the event array
  // Text from behind the last proven event on, behind one character: what that text follows, white
  // space aside. Whether a brace begins an event is told by what stands in front of it.
  std::string carry_{"["};
  std::int64_t carry_offset_ = 0;  // of what follows that character
  std::int64_t tail_offset_ = 0, text_bytes_ = 0;
  std::size_t retry_at_ = 0;  // parse the carry, or the head, again when it has grown to this size
  bool lost_ = false;         // inside damage: the next guess is taken without proof
  RowBuilder builder_;        // for what the joiner parses itself
  Batch batch_;
  ThreadIndex threads_;
  std::array<FaultCount, kFaultCount> faults_{};
  std::int64_t commas_ = 0;  // between the events
};

}  // namespace culprit::ingest
