#include <atomic>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "culprit/profile.h"
#include "profile/recorder.h"

namespace culprit::profile {
namespace {

using detail::Recorder;

std::atomic<bool> taken{false};  // there is a session that is on

const char* variable(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
  return text != nullptr && *text != '\0' ? text : nullptr;
}

Error bad_variable(std::string_view name, std::string_view text, std::string_view wanted) {
  return {"\"" + std::string(text) + "\" is not " + std::string(wanted), std::string(name),
          "set it to " + std::string(wanted) + ", or unset it"};
}

// Sets `value` to the variable's, which must be `least` or more.
std::optional<Error> read_count(const char* name, std::int64_t least, std::int64_t& value) {
  const char* text = variable(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc{} || end != digits.data() + digits.size() || number < least)
    return bad_variable(name, digits, "a whole number of " + std::to_string(least) + " or more");
  value = number;
  return std::nullopt;
}

std::optional<Error> read_environment(Options& options) {
  constexpr const char* kSwitch = "CULPRIT_PROFILE_DECODE";
  if (const char* text = variable(kSwitch)) {
    const std::string_view word(text);
    if (word != "0" && word != "1") return bad_variable(kSwitch, word, "0 or 1");
    options.on = word == "1";
  }
  if (auto error = read_count("CULPRIT_PROFILE_WARMUP", 0, options.warmup)) return error;
  if (auto error = read_count("CULPRIT_PROFILE_STEPS", 1, options.steps)) return error;
  if (const char* text = variable("CULPRIT_PROFILE_OUTPUT")) options.output = text;
  return std::nullopt;
}

std::optional<Error> check(const Options& options) {
  constexpr std::size_t kLargestBuffer = std::size_t{16} << 30;
  if (options.warmup < 0 || options.steps < 1)
    return Error{"the window has no steps", "Options::warmup, Options::steps",
                 "warmup is 0 or more, steps 1 or more"};
  if (options.rank < 0 || options.rank >= options.ranks)
    return Error{"rank " + std::to_string(options.rank) + " of " + std::to_string(options.ranks),
                 "Options::rank", "ranks count from 0"};
  if (options.buffer_bytes > kLargestBuffer)
    return Error{"a buffer of " + std::to_string(options.buffer_bytes) + " bytes",
                 "Options::buffer_bytes", "64 MiB hold half a million spans"};
  if (!options.output.ends_with(".json") && !options.output.ends_with(".json.gz"))
    return Error{"a trace is JSON, plain or in gzip", options.output,
                 "let its name end in .json or .json.gz"};
  return std::nullopt;
}

// "decode.trace.json.gz" -> "decode-rank3.trace.json.gz"
std::string path_of(const Options& options) {
  if (options.ranks == 1) return options.output;
  std::string path = options.output;
  std::string_view stem(path);
  for (const std::string_view ending : {".gz", ".json", ".trace"})
    if (stem.ends_with(ending)) stem.remove_suffix(ending.size());
  return path.insert(stem.size(), "-rank" + std::to_string(options.rank));
}

}  // namespace

std::string Error::text() const {
  return what + (where.empty() ? "" : ": " + where) + (hint.empty() ? "" : " (" + hint + ")");
}

Session::Session(Options options) {
  if (options.environment) error_ = read_environment(options);
  if (error_ || !options.on || (error_ = check(options))) return;
  if (taken.exchange(true)) {
    error_ = Error{"another session records already", options.output, "finish that one first"};
    return;
  }
  detail::TraceFile file(path_of(options));
  error_ = file.open();
  auto arena = std::make_unique<detail::Arena>(error_ ? 0 : options.buffer_bytes);
  if (!error_ && arena->blocks() == 0)
    error_ = Error{"no memory for the buffer", std::to_string(options.buffer_bytes) + " bytes",
                   "lower Options::buffer_bytes"};
  if (error_) {
    taken = false;
    return;
  }
  detail::choose_clock();
  recorder_ = std::make_unique<Recorder>(std::move(options), std::move(arena), std::move(file));
  detail::install(recorder_.get());
  recorder_->start();
}

Session::~Session() { finish(); }

void Session::pause() {
  if (recorder_ != nullptr) recorder_->pause();
}

void Session::resume() {
  if (recorder_ != nullptr) recorder_->resume();
}

Report Session::finish() {
  Report report;
  report.error = error_;
  if (recorder_ == nullptr) return report;
  report = recorder_->finish();
  detail::install(nullptr);
  recorder_.reset();
  taken = false;
  return report;
}

}  // namespace culprit::profile
