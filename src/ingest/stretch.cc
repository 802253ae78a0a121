#include "ingest/stretch.h"

namespace culprit::ingest {

Stretch parse_stretch(const char* begin, const char* p, const char* end, std::int64_t offset,
                      RowBuilder& builder, Batch& batch) {
  Stretch stretch;
  stretch.first = p;
  RawEvent event;
  const auto byte = [&](const char* at) { return offset + (at - begin); };
  for (;;) {
    p = skip_space(p);
    while (*p == ',') p = skip_space(p + 1);
    stretch.stop = p;
    if (p >= end) return stretch;
    if (*p == ']') {
      stretch.closed = true;
      return stretch;
    }
    EventEnd parsed{Parsed::kMalformed, p};
    if (*p == '{') parsed = parse_event(p, end, event, builder.keys);
    if (parsed.status == Parsed::kIncomplete) return stretch;
    if (parsed.status == Parsed::kOk) {
      builder.add(event, byte(p), batch);
      p = parsed.next;
      continue;
    }
    builder.add_bad(byte(p), batch);
    p = find_event(begin, p + 1, end);
    if (p >= end) {
      stretch.stop = end;
      stretch.lost = true;
      return stretch;
    }
  }
}

}  // namespace culprit::ingest
