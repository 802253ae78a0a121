#include "ingest/document.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ingest/event.h"
#include "ingest/text.h"

namespace culprit::ingest {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxKept = std::size_t{16}
                                 << 20;  // a longer top-level value is skipped, not kept

std::int64_t integer(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return 0;
  if (it->is_number_unsigned()) {
    const auto v = it->get<std::uint64_t>();
    return v > 0x7fffffffffffffffULL ? 0 : static_cast<std::int64_t>(v);
  }
  if (it->is_number_float()) {  // 4.8e12: other writers' whole numbers
    const double v = it->get<double>();
    return v >= -9e18 && v <= 9e18 ? std::llround(v) : 0;
  }
  return it->is_number_integer() ? it->get<std::int64_t>() : 0;
}

store::DeviceProperties device_from(const Json& object) {
  store::DeviceProperties d;
  d.id = integer(object, "id");
  if (const auto name = object.find("name"); name != object.end() && name->is_string()) {
    d.name = cleaned(name->get_ref<const std::string&>());
  }
  d.total_memory = integer(object, "totalGlobalMem");
  d.sms = integer(object, "numSms");
  d.cc_major = integer(object, "computeMajor");
  d.cc_minor = integer(object, "computeMinor");
  // Bytes a second. PyTorch does not write it; recorders of other engines may (culprit::profile).
  constexpr std::int64_t kLeast = 1'000'000'000, kMost = 1'000'000'000'000'000;
  const std::int64_t bandwidth = integer(object, "memoryBandwidth");
  if (bandwidth >= kLeast && bandwidth <= kMost) d.peak_gbps = static_cast<double>(bandwidth) / 1e9;
  return d;
}

// What `culprit slice` wrote (slice/slice.h); none where it says nothing that could be.
std::optional<store::Slice> slice_from(const Json& object) {
  constexpr Nanos kFirst = -(Nanos{1} << 60), kLast = Nanos{1} << 62;
  const auto text = [](const Json& from, const char* key) {
    const auto it = from.find(key);
    return it != from.end() && it->is_string() ? cleaned(it->get_ref<const std::string&>())
                                               : std::string();
  };
  const auto steps = object.is_object() ? object.find("steps") : object.end();
  if (steps == object.end() || !steps->is_array() || steps->empty()) return std::nullopt;
  store::Slice slice{text(object, "of"), text(object, "how"), {}, 0, 0};
  slice.launch_spacing = std::max<Nanos>(0, integer(object, "launch_spacing_ns"));
  slice.launch_cost = std::max<Nanos>(0, integer(object, "launch_cost_ns"));
  Nanos before = kFirst;
  for (const Json& each : *steps) {
    if (!each.is_object()) return std::nullopt;
    store::SliceStep step{integer(each, "begin_ns"), integer(each, "end_ns"), text(each, "kind"),
                          text(each, "mark")};
    if (step.begin < before || step.end <= step.begin || step.end > kLast) return std::nullopt;
    before = step.end;
    if (each.contains("batch")) step.batch = integer(each, "batch");
    if (each.contains("tokens")) step.tokens = integer(each, "tokens");
    slice.steps.push_back(std::move(step));
  }
  return slice;
}

bool is_on(std::string_view raw) { return raw == "1" || raw == "true"; }

}  // namespace

// Keys and values from behind '{' or a ',' up to the closing brace or an event array; returns where
// it stopped, or null where the text is no JSON. `complete`: the brace or the array was reached.
const char* Document::read_keys(const char* p, const char* end, bool& complete) {
  complete = false;
  for (;;) {
    p = skip_space(p);
    if (p >= end) return end;
    if (*p == ',') {
      ++p;
      continue;
    }
    if (*p == '}') {
      complete = true;
      return p + 1;
    }
    key_ = p;
    if (*p != '"') return nullptr;
    const EventEnd key = skip_value(p, end);
    if (key.status != Parsed::kOk) return key.status == Parsed::kIncomplete ? end : nullptr;
    std::string name(p + 1, key.next - 1);
    p = skip_space(key.next);
    if (p >= end) return end;
    if (*p != ':') return nullptr;
    p = skip_space(p + 1);
    if (p >= end) return end;
    if (name == "traceEvents" && *p == '[') {
      complete = true;
      return p + 1;
    }
    const EventEnd value = skip_value(p, end);
    if (value.status == Parsed::kIncomplete) return end;
    if (value.status == Parsed::kMalformed) return nullptr;
    const auto size = static_cast<std::size_t>(value.next - p);
    if (size <= kMaxKept) values_[std::move(name)] = std::string(p, size);
    p = value.next;
  }
}

// Behind the bracket of the first `"traceEvents": [` at or after p; null if there is none.
const char* Document::find_events(const char* p, const char* end) const {
  constexpr std::string_view kKey = "\"traceEvents\"";
  std::string_view text(p, static_cast<std::size_t>(end - p));
  for (std::size_t at = 0; (at = text.find(kKey, at)) != std::string_view::npos;
       at += kKey.size()) {
    const char* next = skip_space(p + at + kKey.size());
    if (*next != ':') continue;
    next = skip_space(next + 1);
    if (*next == '[') return next + 1;
  }
  return nullptr;
}

Document::Head Document::read_head(std::string_view text) {
  const char* end = text.data() + text.size();
  const char* p = text.data();
  if (text.substr(0, 3) == "\xef\xbb\xbf") p += 3;
  p = skip_space(p);
  if (p >= end) return Head::kNeedMore;
  if (*p == '[') {
    events_at_ = static_cast<std::size_t>(p + 1 - text.data());
    return Head::kEvents;
  }
  if (*p != '{') return Head::kNotJson;
  object_ = true;
  bool complete = false;
  damaged_at_.reset();
  const char* stop = read_keys(p + 1, end, complete);
  if (stop == nullptr) {
    damaged_at_ = static_cast<std::size_t>(key_ - text.data());
    stop = find_events(key_, end);
    if (stop == nullptr) return Head::kNotJson;
    complete = true;
  }
  if (!complete) return Head::kNeedMore;
  if (stop[-1] == '}') return Head::kNone;
  events_at_ = static_cast<std::size_t>(stop - text.data());
  return Head::kEvents;
}

Document::Tail Document::read_tail(std::string_view text) {
  const char* end = text.data() + text.size();
  const char* p = text.data();
  if (object_) {
    bool complete = false;
    p = read_keys(p, end, complete);
    if (p == nullptr || !complete) return Tail::kTruncated;
    if (p[-1] == '[') {
      tail_end_ = static_cast<std::size_t>(p - text.data());
      return Tail::kSecondArray;
    }
  }
  p = skip_space(p);
  tail_end_ = static_cast<std::size_t>(p - text.data());
  if (p >= end) return Tail::kComplete;
  return *p == '{' || *p == '[' ? Tail::kSecondDocument : Tail::kTrailing;
}

void Document::describe(store::TraceInfo& info, store::Notes& notes) const {
  const auto parsed = [&](std::string_view key) {
    const auto it = values_.find(key);
    return it == values_.end() ? Json() : Json::parse(it->second, nullptr, false);
  };
  const auto raw = [&](std::string_view key) {
    const auto it = values_.find(key);
    return it == values_.end() ? std::string_view{} : std::string_view(it->second);
  };
  if (const Json devices = parsed("deviceProperties"); devices.is_array()) {
    for (const Json& d : devices) {
      if (d.is_object()) info.devices.push_back(device_from(d));
    }
  } else if (!devices.is_null()) {
    notes.add({"bad-string",
               store::Severity::kWarning,
               1,
               {},
               {},
               "deviceProperties",
               "the device description cannot be read; pass --gpu NAME"});
  }
  if (const Json distributed = parsed("distributedInfo"); distributed.is_discarded()) {
    notes.add({"bad-string",
               store::Severity::kWarning,
               1,
               {},
               {},
               "distributedInfo",
               "the rank cannot be read from the header"});
  } else if (distributed.is_object()) {
    if (distributed.contains("rank")) info.rank = integer(distributed, "rank");
    if (distributed.contains("world_size")) info.world_size = integer(distributed, "world_size");
  }
  if (has("culpritSlice")) {
    info.slice = slice_from(parsed("culpritSlice"));
    if (!info.slice)
      notes.add(
          {"bad-string",
           store::Severity::kWarning,
           1,
           {},
           {},
           "culpritSlice",
           "what the file says about the recording that it was cut from cannot be read: steps "
           "are looked for as in any trace"});
  }
  if (const Json base = parsed("baseTimeNanoseconds"); base.is_number_integer())
    info.base = base.get<std::int64_t>();
  info.record_shapes = is_on(raw("record_shapes"));
  info.with_stack = is_on(raw("with_stack"));
  info.rocm |=
      has("hip_runtime_version") || has("roctracer_version") || has("rocprofiler-sdk_version");
}

Error refuse_by_content(const std::string& path, std::string_view head) {
  const auto begins = [&](std::string_view magic) { return head.substr(0, magic.size()) == magic; };
  const auto named = [&](std::string_view suffix) {
    return path.size() >= suffix.size() &&
           path.compare(path.size() - suffix.size(), suffix.size(), suffix) == 0;
  };
  Error e{Error::Code::kUnsupported, "", path, ""};
  const char* p = skip_space(head.data());
  const bool marked = begins("\xff\xfe") || begins("\xfe\xff");
  const bool little = (*p == '{' || *p == '[') && p[1] == '\0' && head.size() > 1;
  if (marked || little || begins({"\0{", 2}) || begins({"\0[", 2})) {
    const char* encoding = marked ? "UTF-16" : little ? "UTF-16LE" : "UTF-16BE";
    e.what = "UTF-16 text";
    e.hint = std::string("convert it first: iconv -f ") + encoding + " -t UTF-8 FILE | culprit -";
    return e;
  }
  if (begins("\xef\xbb\xbf") || *p == '{' || *p == '[') return e;
  if (p >= head.data() + head.size()) {
    e.code = Error::Code::kBadInput;
    e.what = "not a trace: it begins with nothing but white space";
    e.hint = "record the trace again";
    e.note_code = "empty";
  } else if (*p == '\0') {
    e.code = Error::Code::kBadInput;
    e.what =
        "zero bytes stand where the trace should begin: the file was reserved, but not written";
    e.hint = "copy or record it again";
  } else if (begins("PK\x03\x04")) {
    e.what = "a zip archive";
    e.hint = "unpack it first: unzip -p FILE | culprit -";
  } else if (begins("SQLite format 3")) {
    e.what =
        "an SQLite database that is compressed or comes through a pipe, which cannot be searched";
    e.hint = "unpack it (gunzip, zstd -d) or save it, and pass the plain .sqlite file";
  } else if (named(".nsys-rep") || named(".qdrep")) {
    e.what = "an Nsight Systems report, which only Nsight Systems reads";
    e.hint = "export it: nsys export --type sqlite FILE, and pass the .sqlite file";
  } else if (named(".pftrace") || named(".perfetto-trace") || begins("\x0a")) {
    e.what = "a Perfetto protobuf trace";
    e.hint = "export Chrome JSON instead: torch.profiler's export_chrome_trace(\"trace.json.gz\")";
  } else if (begins("\x1f\x8b") || begins("\x28\xb5\x2f\xfd")) {
    e.what = "compressed twice";
    e.hint = begins("\x1f\x8b") ? "unpack it once: gunzip -c < FILE | culprit -"
                                : "unpack it once: zstd -dc FILE | culprit -";
  } else {
    e.code = Error::Code::kBadInput;
    e.what = "not a trace: it does not begin like JSON";
    e.hint = "pass the .json or .json.gz that torch.profiler wrote";
  }
  return e;
}

}  // namespace culprit::ingest
