// A summary's file: a line that names the format, then its parts, each behind its length and its hash: key,
// whether it is worth keeping, head, tail, the blocks of collectives.
#include "fleet/shelf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/version.h"
#include "fleet/hash.h"

namespace culprit::fleet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "culprit summary 1\n";  // another number, another format
constexpr std::size_t kHeader = 2 * sizeof(std::uint64_t);   // of a part
constexpr std::uint64_t kLongestPart = std::uint64_t{1} << 30;
constexpr std::string_view kKeep = "keep", kTryAgain = "try again";

std::string packed(std::uint64_t number) {
  std::string bytes(sizeof number, '\0');
  for (char& byte : bytes) byte = static_cast<char>(number & 0xFF), number >>= 8;
  return bytes;
}

std::uint64_t unpacked(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

void add_part(std::string& out, std::string_view part) {
  out += packed(part.size()) + packed(hash(part));
  out += part;
}

}  // namespace

// The parts of a file, one after another; none behind the first that is not whole.
class Parts {
 public:
  explicit Parts(const std::string& path) : in_(path, std::ios::binary) {
    std::string format(kFormat.size(), '\0');
    in_.read(format.data(), static_cast<std::streamsize>(format.size()));
    good_ = in_.good() && format == kFormat;
  }

  // `skip`: unread.
  bool next(std::string& part, bool skip = false) {
    std::string header(kHeader, '\0');
    if (good_) in_.read(header.data(), static_cast<std::streamsize>(kHeader));
    const std::uint64_t size = unpacked(std::string_view(header).substr(0, kHeader / 2));
    good_ = good_ && in_.good() && size <= kLongestPart;
    if (!good_) return false;
    if (skip) return static_cast<bool>(in_.seekg(static_cast<std::streamoff>(size), std::ios::cur));
    part.resize(size);
    in_.read(part.data(), static_cast<std::streamsize>(size));
    good_ = in_.good() && hash(part) == unpacked(std::string_view(header).substr(kHeader / 2));
    return good_;
  }

 private:
  std::ifstream in_;
  bool good_ = false;
};

namespace {

Error cannot_write(const std::string& path, int error) {
  return {.code = Error::Code::kCannotRead,
          .what = fmt::format("cannot be written: {}", std::strerror(error)),
          .where = path,
          .hint = "check the folder, its permissions and the space on its disk",
          .note_code = {}};
}

Error no_summary(const std::string& path, std::string what) {
  return {.code = Error::Code::kCannotRead,
          .what = std::move(what),
          .where = path,
          .hint = "start again: what is finished is kept",
          .note_code = {}};
}

}  // namespace

Shelf::Shelf(std::string folder, std::string flags)
    : folder_(std::move(folder)), flags_(std::move(flags)) {}

std::string Shelf::key_of(const TraceFile& trace) const {
  return fmt::format("{}\n{}\n{}\n{}\n{}", trace.path, trace.bytes, trace.changed, version(),
                     flags_);
}

std::string Shelf::file_of(const TraceFile& trace) const {
  return fmt::format("{}/{:016x}.summary", folder_, hash(trace.path));
}

Status Shelf::create() const {
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) return cannot_write(folder_, failed.value());
  return Ok{};
}

bool Shelf::has(const TraceFile& trace) const {
  Parts parts(file_of(trace));
  std::string key, worth;
  if (!parts.next(key) || key != key_of(trace) || !parts.next(worth) || worth != kKeep)
    return false;
  return load(trace).ok();
}

void Shelf::drop(const TraceFile& trace) const {
  std::error_code failed;
  fs::remove(file_of(trace), failed);
}

Status Shelf::keep(const TraceFile& trace, const Summary& summary) const {
  const bool passing = summary.fault && summary.fault->code == Error::Code::kCannotRead;
  const Encoded encoded = encode(summary);
  std::string out(kFormat);
  add_part(out, key_of(trace));
  add_part(out, passing ? kTryAgain : kKeep);
  add_part(out, encoded.head);
  add_part(out, encoded.tail);
  for (const std::string& block : encoded.blocks) add_part(out, block);
  return replace_file(file_of(trace), out);
}

Status Shelf::open(const TraceFile& trace, Parts& parts, Summary& summary) const {
  std::string bytes;
  if (!parts.next(bytes)) return no_summary(file_of(trace), "is no summary, or a damaged one");
  if (bytes != key_of(trace)) return no_summary(file_of(trace), "is the summary of another trace");
  const bool whole = parts.next(bytes) && parts.next(bytes) && decode_head(bytes, summary);
  if (!whole) return no_summary(file_of(trace), "is a damaged summary");
  return Ok{};
}

Result<Summary> Shelf::load_head(const TraceFile& trace) const {
  Parts parts(file_of(trace));
  Summary summary;
  TRY([[maybe_unused]] const Ok opened, open(trace, parts, summary));
  return summary;
}

Result<Summary> Shelf::load(const TraceFile& trace, StepRange steps) const {
  Parts parts(file_of(trace));
  Summary summary;
  TRY([[maybe_unused]] const Ok opened, open(trace, parts, summary));
  std::vector<StepRange> blocks;
  std::string bytes;
  bool whole = parts.next(bytes) && decode_tail(bytes, summary, blocks);
  for (std::size_t b = 0; b < blocks.size() && whole && blocks[b].first < steps.end; ++b) {
    const bool wanted = blocks[b].end > steps.first;
    whole = parts.next(bytes, !wanted) && (!wanted || decode_block(bytes, steps, summary));
  }
  if (!whole) return no_summary(file_of(trace), "is a damaged summary");
  if (steps.first > 0 || steps.end != kAllSteps) {
    // Behind the last collective of a summary that was cut no step counts.
    const bool was_cut = summary.calls_kept < summary.calls_in_all;
    if (was_cut) steps.end = std::min(steps.end, blocks.empty() ? 0 : blocks.back().end);
    summary.figures.record.steps = used_steps(summary.steps, steps);
  }
  return summary;
}

std::vector<TraceFile> look_up(const std::vector<std::string>& paths) {
  std::vector<TraceFile> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) {
    std::error_code failed;
    TraceFile file{path, 0, 0};
    const auto bytes = fs::file_size(path, failed);
    if (!failed) file.bytes = static_cast<std::int64_t>(bytes);
    const auto changed = fs::last_write_time(path, failed);
    if (!failed) file.changed = std::chrono::nanoseconds(changed.time_since_epoch()).count();
    files.push_back(std::move(file));
  }
  return files;
}

Status replace_file(const std::string& path, std::string_view content) {
  // The same name every time: what a killed process leaves is written over by the next.
  const std::string temporary = path + ".part";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) return cannot_write(path, errno);
  std::error_code failed;
  fs::rename(temporary, path, failed);
  if (failed) return cannot_write(path, failed.value());
  return Ok{};
}

}  // namespace culprit::fleet
