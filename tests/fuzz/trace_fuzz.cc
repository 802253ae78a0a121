// The whole way from the bytes of a Chrome trace to an answer. The first byte chooses block size, threads, packing and limits;
// the same text in one block must give the same rows and notes, where no limit cuts it. Built for libFuzzer with the `fuzz`
// preset; in ordinary builds replay.cc feeds the seeds.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>

#include "answer.h"
#include "ingest/ingest.h"
#include "packed.h"

using namespace culprit;

namespace {

using Loaded = Result<std::unique_ptr<store::Trace>>;

Loaded load(const std::string& path, const ingest::Limits& limits, int threads = 1,
            bool cancel = false) {
  ingest::Options options;
  options.limits = limits;
  options.threads = threads;
  options.progress_interval = {};
  options.progress = [cancel](const ingest::Progress&) { return !cancel; };
  return ingest::load(path, options);
}

// What no reader can read: an error, and no more.
void must_refuse() {
  for (const char* path : {"/", "/nowhere/at-all.json", "/proc/self/mem"}) {
    const Loaded trace = load(path, {});
    if (trace.ok() || trace.error().what.empty()) std::abort();
  }
}

// What must not depend on blocks: rows with their texts. Ids may: names of dropped guesses stay interned.
template <class Value>
std::string shown(const store::Trace& trace, const Value& value) {
  if constexpr (std::is_same_v<Value, store::StringId>) {
    return std::string(trace.strings[value]);
  } else if constexpr (std::is_same_v<Value, store::ThreadId>) {
    const store::Thread& thread = trace.threads[value.index];
    return shown(trace, thread.pid) + "/" + shown(trace, thread.tid) + "/" +
           shown(trace, thread.rank);
  } else if constexpr (std::is_same_v<Value, store::Dim3>) {
    return shown(trace, value[0]) + "," + shown(trace, value[1]) + "," + shown(trace, value[2]);
  } else {
    return std::to_string(static_cast<std::int64_t>(value));
  }
}

template <class Column>
bool same_column(const store::Trace& a, const Column& of_a, const store::Trace& b,
                 const Column& of_b) {
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                    [&](const auto& x, const auto& y) { return shown(a, x) == shown(b, y); });
}

template <class Table>
bool same_table(store::Trace& a, Table& of_a, store::Trace& b, Table& of_b) {
  auto columns_a = of_a.columns();
  auto columns_b = of_b.columns();
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return (same_column(a, std::get<I>(columns_a), b, std::get<I>(columns_b)) && ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(columns_a)>>{});
}

bool same_notes(const store::Notes& a, const store::Notes& b) {
  const auto same = [](const store::Note& x, const store::Note& y) {
    return std::tie(x.code, x.severity, x.count, x.byte, x.event, x.where, x.message) ==
           std::tie(y.code, y.severity, y.count, y.byte, y.event, y.where, y.message);
  };
  return std::equal(a.all().begin(), a.all().end(), b.all().begin(), b.all().end(), same);
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "blocks make a difference: %s\n", what);
  std::abort();
}

void show_notes(const store::Trace& trace) {
  for (const store::Note& note : trace.notes.all())
    std::fprintf(stderr, "%s x %lld at byte %lld: %s\n", note.code.c_str(),
                 static_cast<long long>(note.count), static_cast<long long>(note.byte.value_or(-1)),
                 note.message.c_str());
  std::fprintf(stderr, "%lld events\n", static_cast<long long>(trace.info.events));
}

void must_agree(Loaded& a, Loaded& b) {
  must(a.ok() == b.ok(), "refused or not");
  if (!a.ok()) return;
  store::Trace &x = **a, &y = **b;
  const bool notes = same_notes(x.notes, y.notes) && x.info.events == y.info.events;
  if (!notes) show_notes(x), show_notes(y);
  must(notes, "notes");
  must(same_table(x, x.device, y, y.device), "device");
  must(same_table(x, x.calls, y, y.calls), "calls");
  must(same_table(x, x.ops, y, y.ops), "operators");
  must(same_table(x, x.frames, y, y.frames), "frames");
  must(same_table(x, x.marks, y, y.marks), "marks");
  must(same_table(x, x.syncs, y, y.syncs), "syncs");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  if (size == 1) must_refuse();
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto packing = static_cast<fuzz::Packing>(data[0] >> 4 & 3U);
  const fuzz::MemoryFile plain(text);
  const fuzz::PackedFile packed(text, packing);
  ingest::Limits limits;
  limits.block = std::size_t{64} << (data[0] & 7U);
  const bool answers = (data[0] & 0x40U) == 0, limited = (data[0] & 0x80U) != 0;
  if (limited) limits.head = 256, limits.event = 512;
  Loaded trace = load(packed.path(), limits, 1 + (data[0] >> 3 & 1U), limited && !answers);
  if (!trace.ok() && trace.error().what.empty()) std::abort();
  // How much of damaged compressed data is unpacked is up to its library, and depends on the pieces asked for.
  const bool compressed =
      text.substr(0, 2) == "\x1f\x8b" || text.substr(0, 4) == "\x28\xb5\x2f\xfd";
  if (!compressed && !limited) {
    Loaded whole = load(plain.path(), {.block = std::bit_ceil(size + 1)});
    must_agree(trace, whole);
  }
  if (trace.ok() && answers) fuzz::answer(**trace);
  return 0;
}
