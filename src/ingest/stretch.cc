#include "ingest/stretch.h"

namespace culprit::ingest {
namespace {

// p at what stands in the event array and is no object: null, 5, "text", [1, 2]. kOk: a value by itself, with the array going
// on behind it. A value in which an event can be found is damage: its bracket or quote is one too many.
EventEnd skip_stranger(const char* begin, const char* p, const char* end) {
  EventEnd value = skip_value(p, end);
  const char* limit = value.status == Parsed::kOk ? value.next : end;
  if (value.status != Parsed::kMalformed && find_event(begin, p + 1, limit) != limit)
    return {Parsed::kMalformed, p};
  if (value.status != Parsed::kOk) return value;
  const char* behind = skip_space(value.next);
  if (behind >= end) return {Parsed::kIncomplete, p};
  if (*behind != ',' && *behind != ']') return {Parsed::kMalformed, p};
  return value;
}

}  // namespace

Stretch parse_stretch(const char* begin, const char* p, const char* end, std::int64_t offset,
                      RowBuilder& builder, Batch& batch) {
  Stretch stretch;
  stretch.first = p;
  RawEvent event;
  const auto byte = [&](const char* at) { return offset + (at - begin); };
  for (;;) {
    p = skip_space(p);
    for (; *p == ','; p = skip_space(p + 1)) ++batch.commas;
    stretch.stop = p;
    if (p >= end) return stretch;
    if (*p == ']') {
      stretch.closed = true;
      return stretch;
    }
    const bool object = *p == '{';
    const EventEnd parsed =
        object ? parse_event(p, end, event, builder.keys) : skip_stranger(begin, p, end);
    if (parsed.status == Parsed::kIncomplete) return stretch;
    if (parsed.status == Parsed::kOk) {
      object ? builder.add(event, byte(p), batch) : builder.add_bad(byte(p), batch);
      p = parsed.next;
      continue;
    }
    builder.add_bad(byte(p), batch);
    const char* damage = p;
    p = find_event(begin, damage + 1, end);
    if (p >= end) {
      stretch.stop = find_cut_event(begin, damage + 1, end);
      stretch.lost = true;
      return stretch;
    }
  }
}

}  // namespace culprit::ingest
