#include "ingest/event.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ingest/key_predictor.h"

namespace culprit::ingest {
namespace {

template <std::size_t N>
bool is(const char* key, const char (&literal)[N]) {
  return std::memcmp(key, literal, N - 1) == 0;
}

Field event_field(const char* key, std::size_t size) {
  switch (size) {
    case 2:
      return is(key, "ph") ? Field::kPhase : is(key, "ts") ? Field::kTs : Field::kIgnored;
    case 3:
      return is(key, "cat")   ? Field::kCategory
             : is(key, "pid") ? Field::kPid
             : is(key, "tid") ? Field::kTid
             : is(key, "dur") ? Field::kDur
                              : Field::kIgnored;
    case 4:
      return is(key, "name") ? Field::kName : Field::kIgnored;
    default:
      return Field::kIgnored;
  }
}

Field args_field(const char* key, std::size_t size) {
  switch (size) {
    case 3:
      return is(key, "Seq") ? Field::kSequence : Field::kIgnored;
    case 4:
      return is(key, "grid") ? Field::kGrid : Field::kIgnored;
    case 5:
      return is(key, "block")   ? Field::kBlock
             : is(key, "bytes") ? Field::kBytes
             : is(key, "dtype") ? Field::kCollectiveDtype
                                : Field::kIgnored;
    case 6:
      return is(key, "device")   ? Field::kDevice
             : is(key, "stream") ? Field::kStream
             : is(key, "kernel") ? Field::kKernel
                                 : Field::kIgnored;
    case 8:
      return is(key, "CallFrom") ? Field::kCallFrom : Field::kIgnored;
    case 9:
      return is(key, "Task Type") ? Field::kTaskType : Field::kIgnored;
    case 10:
      return is(key, "Input Dims") || is(key, "Input dims") ? Field::kDims
             : is(key, "Input type")                        ? Field::kTypes
             : is(key, "Group size")                        ? Field::kGroupSize
                                                            : Field::kIgnored;
    case 11:
      return is(key, "External id") || is(key, "external id") ? Field::kExternal
             : is(key, "correlation")                         ? Field::kCorrelation
                                                              : Field::kIgnored;
    case 13:
      return is(key, "In msg nelems")   ? Field::kInElements
             : is(key, "connection_id") ? Field::kConnection
             : is(key, "graph node id") ? Field::kGraphNode
                                        : Field::kIgnored;
    case 14:
      return is(key, "Out msg nelems") ? Field::kOutElements : Field::kIgnored;
    case 15:
      return is(key, "Collective name") ? Field::kCollective : Field::kIgnored;
    case 16:
      return is(key, "Physic Stream Id") ? Field::kStream : Field::kIgnored;
    case 18:
      return is(key, "Process Group Name") ? Field::kGroup : Field::kIgnored;
    case 19:
      return is(key, "Process Group Ranks") ? Field::kGroupRanks : Field::kIgnored;
    default:
      return Field::kIgnored;
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What may stand where a number, true, false or null belongs. "inf", "NaN", "N/A", "-Infinity" must
// not.
bool is_json_scalar(const char* p, std::size_t size) {
  if (is_digit(*p)) return true;
  if (*p == '-') return size > 1 && is_digit(p[1]);
  return (size == 4 && (is(p, "true") || is(p, "null"))) || (size == 5 && is(p, "false"));
}

// A cheap tag of the event's category: keys of one category follow each other in one order.
std::uint32_t kind_tag(const RawEvent& event) {
  if (!event.has(Field::kCategory)) return 1;
  const std::string_view category = event[Field::kCategory];
  const auto first = category.empty() ? 0U : static_cast<unsigned char>(category[0]);
  return 2 + static_cast<std::uint32_t>(category.size()) * 257U + first;
}

template <bool kTolerant>
class Parser {
 public:
  Parser(const char* end, RawEvent& event, KeyPredictor* keys)
      : end_(end), event_(event), keys_(keys) {}

  EventEnd run(const char* p) {
    p = object<event_field>(p + 1, 0);
    return {status_, p == nullptr ? failed_at_ : p};
  }
  EventEnd skip(const char* p) {
    p = value(p, Field::kIgnored);
    return {status_, p == nullptr ? failed_at_ : p};
  }

 private:
  static constexpr int kMaxDepth = 64;

  // A fault that rests on where the text ends may be none when more of it is there.
  const char* fail(const char* at) {
    status_ = at >= end_ || guessed_ ? Parsed::kIncomplete : Parsed::kMalformed;
    failed_at_ = at;
    return nullptr;
  }
  enum class Role : std::uint8_t { kKey, kValue, kEither };

  // p behind the opening quote; returns the closing quote.
  const char* string(const char* p, Role role, bool& escaped) {
    const char* from = p;
    for (;;) {
      p = find_string_stop(p);
      if (*p == '"') {
        if (!kTolerant) return p;
        if (ends_string(p + 1, role)) {
          // A lost quote must not swallow the next event.
          return find_event(from, from, p) == p ? p : fail(from);
        }
        ++p;
      } else if (*p == '\\') {
        if (p + 1 >= end_) return fail(end_);
        escaped = true;
        p += kTolerant && p[1] == '"' && ends_string(p + 2, role) && !ends_string(p + 1, role) ? 1
                                                                                               : 2;
      } else {
        if (p >= end_) return fail(p);
        if (!kTolerant || *p == '\n') return fail(p);
        ++p;
      }
    }
  }
  // Could JSON go on like this behind a closing quote? A key's colon, a comma and the next key or
  // element, or closing brackets.
  bool ends_string(const char* p, Role role) {
    p = skip_space(p);
    if (*p == ':') return role != Role::kValue;
    if (role == Role::kKey) return is_end(p);
    if (*p == ',') {
      p = skip_space(p + 1);
      return *p == '"' || *p == '[' || *p == '{' || (*p >= '0' && *p <= '9') || *p == '-' ||
             is_end(p);
    }
    if (*p == ']') return true;
    if (*p != '}') return is_end(p);
    p = skip_space(p + 1);
    return *p == ',' || *p == '}' || *p == ']' || is_end(p);
  }
  bool is_end(const char* p) {
    guessed_ |= p >= end_;
    return p >= end_;
  }

  // The brackets and braces that are open: push and pop say false where they do not match or nest too deep.
  struct Open {
    std::uint64_t braces = 0;  // bit per level: 1 for '{'
    int depth = 0;
    bool push(char c) {
      braces = braces << 1 | (c == '{' ? 1U : 0U);
      return ++depth <= kMaxDepth;
    }
    bool pop(char c) {
      const bool matches = (braces & 1U) == (c == '}' ? 1U : 0U);
      braces >>= 1;
      --depth;
      return matches;
    }
    bool take(char c) { return c == '{' || c == '[' ? push(c) : pop(c); }
  };

  // p at an opening bracket or brace; returns behind the closing one. 64 bytes a step; text with a backslash, or with a
  // control byte inside a string, is left to nested_bytewise.
  [[gnu::noinline]] const char* nested(const char* p) {
#if defined(__SSE2__)
    if constexpr (!kTolerant) {
      Open open;
      std::uint64_t in_string = 0;  // all ones: the step before ended inside a string
      for (const char* at = p; at < end_; at += 64) {
        const Masks m = masks_of(at);
        const std::uint64_t inside = prefix_xor(m.quote) ^ in_string;
        if ((m.backslash | (m.control & inside)) != 0) break;
        for (std::uint64_t bits = m.bracket & ~inside; bits != 0; bits &= bits - 1) {
          const char* hit = at + std::countr_zero(bits);
          if (!open.take(*hit)) return fail(hit);
          if (open.depth == 0) return hit + 1;
        }
        in_string = (inside >> 63) != 0 ? ~std::uint64_t{0} : 0;
      }
    }
#endif
    return nested_bytewise(p);
  }

  const char* nested_bytewise(const char* p) {
    Open open;
    for (;;) {
      p = find_structure(p);
      if (*p == '"') {
        bool escaped = false;
        p = string(p + 1, Role::kEither, escaped);
        if (p == nullptr) return nullptr;
      } else if (*p != '\0') {
        if (!open.take(*p)) return fail(p);
        if (open.depth == 0) return p + 1;
      } else if (p >= end_) {
        return fail(p);
      }
      ++p;  // a zero byte inside the text counts as nothing
    }
  }

  // p at an opening bracket or brace; returns behind the closing one.
  const char* list_or_object(const char* p, Field field) {
#if defined(__SSE2__)
    if (!kTolerant && *p == '[') {
      if (const char* behind = shallow_list_end(p + 1)) return behind;
    }
#endif
    if (field != Field::kIgnored) event_.spread |= 1U << static_cast<unsigned>(field);
    return nested(p);
  }

  const char* value(const char* p, Field field) {
    const char c = *p;
    const char* from = p;
    bool escaped = false;
    std::string_view text;
    if (c == '"') {
      p = string(p + 1, Role::kValue, escaped);
      if (p == nullptr) return nullptr;
      text = {from + 1, static_cast<std::size_t>(p - from - 1)};
      ++p;
    } else if (c == '{' || c == '[') {
      p = list_or_object(p, field);
      if (p == nullptr) return nullptr;
      text = {from, static_cast<std::size_t>(p - from)};
    } else {
      p = find_scalar_end(p);
      // A guessed key may end in front of white space that is there this time.
      if (p >= end_ || p == from) return is_space(c) ? value(skip_space(p), field) : fail(p);
      text = {from, static_cast<std::size_t>(p - from)};
      const bool padded = c == '0' && text.size() > 1 && is_digit(from[1]);  // 03
      if (padded || (!is_digit(c) && !is_json_scalar(from, text.size()))) {
        ++event_.bad_words;
        return p;  // counts as absent
      }
    }
    if (field != Field::kIgnored) {
      const auto index = static_cast<unsigned>(field);
      const std::uint32_t bit = 1U << index;
      event_.text[index] = text;
      event_.twice |= event_.seen & bit;
      event_.seen |= bit;
      if (escaped) event_.escaped |= bit;
    }
    return p;
  }

  // p behind the opening brace; returns behind the closing one. `key_of` names the fields of this
  // level.
  template <Field (*key_of)(const char*, std::size_t)>
  const char* object(const char* p, int level) {
    const std::uint32_t kind = level == 0 ? 0 : kind_tag(event_);
    std::uint8_t slot =
        kTolerant || level == 0 ? KeyPredictor::kEventStart : keys_->args_start(kind);
    for (bool first = true;; first = false) {
      Field field = Field::kIgnored;
      bool is_args = false;
      if (*p == '}') return p + 1;
      if (const KeyPredictor::Guess* guess = kTolerant ? nullptr : keys_->match(slot, p)) {
        p += guess->size;
        field = guess->field;
        is_args = guess->is_args;
        slot = guess->next_slot;
      } else {
        const char* from = p;
        p = skip_space(p);
        if (*p == '}') return p + 1;
        if (!first) {
          if (*p != ',') return fail(p);
          p = skip_space(p + 1);
          if (kTolerant && *p == '}') return p + 1;  // a comma too many
        }
        if (*p != '"') return fail(p);
        bool escaped = false;
        const char* key = p + 1;
        p = string(key, Role::kKey, escaped);
        if (p == nullptr) return nullptr;
        const std::string_view name(key, static_cast<std::size_t>(p - key));
        p = skip_space(p + 1);
        if (*p != ':') return fail(p);
        p = skip_space(p + 1);
        if (p >= end_) return fail(p);  // what cut-off text shows must not be learned
        field = key_of(name.data(), name.size());
        is_args = level == 0 && name == "args";
        if (!kTolerant)
          slot = keys_->learn(slot, {from, static_cast<std::size_t>(p - from)}, name, kind, field,
                              is_args);
      }
      if (is_args && *p != '{') p = skip_space(p);
      p = is_args && *p == '{' ? object<args_field>(p + 1, 1) : value(p, field);
      if (p == nullptr) return nullptr;
    }
  }

  const char* end_;
  RawEvent& event_;
  KeyPredictor* keys_;
  Parsed status_ = Parsed::kOk;
  const char* failed_at_ = nullptr;
  bool guessed_ = false;  // whether a quote ends a string, where the text ends behind it
};

template <bool kTolerant>
EventEnd parse_as(const char* p, const char* end, RawEvent& event, KeyPredictor* keys) {
  event.clear();
  return Parser<kTolerant>(end, event, keys).run(p);
}

constexpr std::string_view kFirstKeys[] = {"ph\"",  "name\"", "cat\"", "pid\"", "ts\"", "tid\"",
                                           "dur\"", "args\"", "id\"",  "bp\"",  "s\""};

bool begins_event(const char* p) {
  p = skip_space(p + 1);
  if (*p != '"') return false;
  ++p;
  for (const std::string_view key : kFirstKeys) {
    if (std::strncmp(p, key.data(), key.size()) == 0) return *skip_space(p + key.size()) == ':';
  }
  return false;
}

// Does the text end before it is told whether the brace at p begins an event?
bool may_begin_event(const char* p, const char* end) {
  p = skip_space(p + 1);
  if (p >= end) return true;
  if (*p != '"') return false;
  ++p;
  for (const std::string_view key : kFirstKeys) {
    const std::size_t there = std::min(key.size(), static_cast<std::size_t>(end - p));
    if (std::memcmp(p, key.data(), there) != 0) continue;
    if (there < key.size() || skip_space(p + key.size()) >= end) return true;
  }
  return false;
}

// What an event stands behind: the comma or bracket in front of p, with nothing but white space
// between; null if there is none.
const char* separator_before(const char* begin, const char* p) {
  while (p > begin && static_cast<unsigned char>(p[-1]) <= ' ') --p;
  return p > begin && (p[-1] == ',' || p[-1] == '[') ? p - 1 : nullptr;
}

}  // namespace

EventEnd parse_event(const char* p, const char* end, RawEvent& event, KeyPredictor& keys) {
  const EventEnd strict = parse_as<false>(p, end, event, &keys);
  if (strict.status != Parsed::kMalformed) return strict;
  const EventEnd tolerant = parse_as<true>(p, end, event, nullptr);
  // Whether a quote ended a string was told by what follows the event.
  if (tolerant.status == Parsed::kOk && skip_space(tolerant.next) >= end)
    return {Parsed::kIncomplete, end};
  event.repaired = tolerant.status == Parsed::kOk;
  return tolerant;
}

EventEnd skip_value(const char* p, const char* end) {
  RawEvent ignored;
  return Parser<false>(end, ignored, nullptr).skip(p);
}

const char* find_event(const char* begin, const char* p, const char* end) {
  while (p < end) {
    const void* hit = std::memchr(p, '{', static_cast<std::size_t>(end - p));
    if (hit == nullptr) return end;
    p = static_cast<const char*>(hit);
    if (separator_before(begin, p) != nullptr && begins_event(p)) return p;
    ++p;
  }
  return end;
}

const char* find_cut_event(const char* begin, const char* p, const char* end) {
  constexpr int kLongestKey = 8;  // with its quotes and a colon
  const char* last = end;
  for (int seen = 0; last > p && *last != '{' && seen < kLongestKey; --last)
    seen += static_cast<unsigned char>(last[-1]) > ' ' ? 1 : 0;
  if (last < end && *last == '{' && may_begin_event(last, end))
    if (const char* separator = separator_before(begin, last)) return separator;
  const char* separator = separator_before(begin, end);
  return separator == nullptr ? end : separator;
}

}  // namespace culprit::ingest
