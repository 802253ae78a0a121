// A slice as text: its own head, that of the file, and the events as they stand there.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "evidence/host.h"
#include "ingest/excerpt.h"
#include "ingest/strict.h"
#include "slice/slice.h"

namespace culprit::slice {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOwnKey = "culpritSlice", kEventsKey = "traceEvents";
constexpr std::string_view kComment = "culprit slice";

Json step_json(const run::Step& step, const store::Span& span) {
  Json json;
  json["begin_ns"] = std::max(step.begin, span.begin);
  json["end_ns"] = std::min(step.end, span.end);
  json["kind"] = run::step_kind_name(step.kind);
  if (!step.mark.empty()) json["mark"] = step.mark;
  if (step.batch) json["batch"] = *step.batch;
  if (step.tokens) json["tokens"] = *step.tokens;
  return json;
}

// What the reader takes its steps from: store::Slice.
std::string own_head(const run::Run& run, const Window& window) {
  Json head;
  head["version"] = 1;
  head["of"] = describe(run, window);
  head["how"] = window.layer ? "whole-trace" : run::steps_how_name(run.how);
  const evidence::HostView host(run);
  head["launch_spacing_ns"] = host.launch_spacing();
  head["launch_cost_ns"] = host.launch_cost();
  head["steps"] = Json::array();
  for (std::size_t s = window.first; s <= window.last; ++s)
    head["steps"].push_back(step_json(run.steps[s], window.span));
  return head.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Bytes of the chosen events: most reach to the next one.
std::size_t likely_size(const Events& events) {
  constexpr std::int64_t kLong = 1'024;
  std::int64_t sum = kLong;
  for (std::size_t i = 1; i < events.bytes.size(); ++i)
    sum += std::min(events.bytes[i] - events.bytes[i - 1], kLong);
  return static_cast<std::size_t>(sum);
}

// Keys of the file that are JSON; what is broken there is left out.
void add_head(const store::Places& places, std::string& text) {
  for (const auto& [key, value] : places.head) {
    if (key == kOwnKey || key == kEventsKey) continue;
    const std::string member = fmt::format("\"{}\": {}", key, value);
    if (ingest::is_strict_json("{" + member + "}")) text += "  " + member + ",\n";
  }
}

constexpr std::string_view kBetween = ",\n";  // events

// Arrows that were copied: an end whose begin is not in the slice, or the reverse, is taken out again.
class Arrows {
 public:
  // `event` will stand at `place` of the text.
  void add(std::size_t place, std::string_view event) {
    const Json json = Json::parse(event, nullptr, false);
    const auto member = [&](const char* key) {
      const auto it = json.is_object() ? json.find(key) : json.end();
      return it == json.end() ? std::string() : it->dump();
    };
    arrows_.push_back({place, place + event.size(), member("cat") + member("id"),
                       member("ph") == "\"s\"" ? kBegins : kEnds});
    ends_[arrows_.back().name] |= arrows_.back().end_of;
  }

  // How many.
  std::int64_t drop_cut(std::string& text) const {
    std::string kept;
    std::size_t from = 0;
    std::int64_t dropped = 0;
    for (const Arrow& arrow : arrows_) {
      if (ends_.at(arrow.name) == (kBegins | kEnds)) continue;
      ++dropped;
      const bool last = arrow.end == text.size();
      kept.append(text, from, arrow.begin - from);
      if (last && kept.ends_with(kBetween)) kept.resize(kept.size() - kBetween.size());
      from = last ? arrow.end : arrow.end + kBetween.size();
    }
    if (dropped == 0) return 0;
    kept.append(text, from, text.size() - from);
    text = std::move(kept);
    return dropped;
  }

 private:
  enum : unsigned { kBegins = 1, kEnds = 2 };
  struct Arrow {
    std::size_t begin = 0, end = 0;  // of its text
    std::string name;                // category and id
    unsigned end_of = 0;
  };
  std::vector<Arrow> arrows_;  // in order of the text
  std::unordered_map<std::string, unsigned> ends_;
};

Error not_of_text(const std::string& path, std::string what, std::string hint) {
  return {.code = Error::Code::kUnsupported,
          .what = std::move(what),
          .where = path == "-" ? "standard input" : path,
          .hint = std::move(hint),
          .note_code = {}};
}

}  // namespace

Result<Written> write(const run::Run& run, const Window& window, const ingest::Options& options) {
  const store::TraceInfo& info = run.trace->info;
  if (info.format != "kineto-json")
    return not_of_text(info.path,
                       "slice copies events of Chrome JSON, and this is an export of Nsight "
                       "Systems",
                       "record shorter (nsys --capture-range), or look at a step with --html");
  if (info.path == "-")
    return not_of_text(info.path, "slice reads a trace twice, which a pipe does not allow",
                       "save it to a file first");
  Written written;
  std::string& text = written.text;
  text = fmt::format("{} {},\n", kBegin, own_head(run, window));
  add_head(run.trace->places, text);
  text += "  \"traceEvents\": [\n";
  const Events events = choose_events(run, window);
  text.reserve(text.size() + likely_size(events));
  Arrows arrows;
  std::size_t copied = 0;
  TRY(const ingest::Excerpt excerpt,
      ingest::copy_events(info.path, events.bytes, options, [&](std::string_view event) {
        if (copied > 0) text += kBetween;
        if (events.arrows[copied++]) arrows.add(text.size(), event);
        text += event;
      }));
  const std::int64_t cut = arrows.drop_cut(text);
  text += "\n]}\n";
  written.events = excerpt.events - cut;
  written.rewritten = excerpt.rewritten;
  return written;
}

Result<std::string> gzip(std::string_view text) {
  constexpr int kLevel = 5, kGzip = 16 + MAX_WBITS, kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return not_of_text({}, "no memory to compress the slice", "write it without .gz");
  std::string comment(kComment);
  gz_header header{};
  header.os = 255;  // unknown: the same bytes everywhere
  header.comment = reinterpret_cast<Bytef*>(comment.data());
  deflateSetHeader(&stream, &header);
  std::string packed;
  std::string block(std::size_t{1} << 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  std::size_t left = text.size();
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      constexpr std::size_t kMost = std::size_t{1} << 30;
      stream.avail_in = static_cast<uInt>(std::min(left, kMost));
      left -= stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
    packed.append(block.data(), block.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

bool is_gzip_of_slice(std::string_view head) {
  constexpr std::string_view kMagic("\x1f\x8b\x08\x10", 4);  // deflate, with a comment
  constexpr std::size_t kFixed = 10;
  return head.starts_with(kMagic) && head.size() > kFixed &&
         head.substr(kFixed).starts_with(kComment);
}

}  // namespace culprit::slice
