// Stretch: the events of one piece of text, parsed in order. Blocks of a file are parsed as
// stretches by several threads at once, each from a guessed first event; the Joiner proves the
// guesses in text order.
#pragma once

#include <cstdint>

#include "ingest/rows.h"

namespace culprit::ingest {

struct Stretch {
  const char* first = nullptr;  // the event it began at; `end` if there was none
  const char* stop =
      nullptr;  // where it ended: the start of an event that the text cuts off (where lost: the
                // separator in front of what could be one), the closing bracket, or `end`
  bool closed = false;  // *stop is the bracket that closes the event array
  bool lost = false;    // ended inside damage: what follows counts only from the next event on
};

// Parses events from `p` on, which is at an event or at separators in front of one; `begin` <= p is
// the start of the text and lies at byte `offset` of the input. A malformed event costs itself:
// parsing goes on at the next one that can be found.
Stretch parse_stretch(const char* begin, const char* p, const char* end, std::int64_t offset,
                      RowBuilder& builder, Batch& batch);

}  // namespace culprit::ingest
