#include "lab/tool/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/text.h"
#include "lab/engine/cores.h"
#include "lab/engine/memory.h"
#include "lab/kernels/roof.h"

namespace culprit::lab {
namespace {

Error cannot_record(const profile::Error& error) {
  return {.code = Error::Code::kCannotRead,
          .what = error.what,
          .where = error.where,
          .hint = error.hint,
          .note_code = {}};
}

bool environment_says(std::string_view value) {
  const char* said = std::getenv("CULPRIT_PROFILE_DECODE");
  return said != nullptr && said == value;
}

}  // namespace

bool wants_recording(const Options& options) {
  return environment_says("1") || (!options.profile.empty() && !environment_says("0"));
}

LaunchMode launch_mode(const Options& options) {
  const bool needs_host = wants_recording(options) || options.faults.sync_per_layer;
  return options.launch.value_or(needs_host ? LaunchMode::kEager : LaunchMode::kGraph);
}

// One bandwidth is the device's: whatever a kernel does, it should not be beyond. Both are told.
Result<profile::Device> this_machine(const Options& options, Screen& screen) {
  constexpr int kPasses = 3;
  constexpr std::int64_t kCaches = 2, kLeast = std::int64_t{256} << 20;  // bytes to be read through
  screen.progress("measuring the memory's bandwidth");
  const Isa isa = options.isa.value_or(best_isa());
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(usable_cores().size());
  Team team(threads);
  TRY(const std::int64_t cache, last_level_cache());
  TRY(Roof roof, Roof::prepare(team, isa, std::max(kCaches * cache, kLeast)));
  for (int pass = 0; pass < kPasses; ++pass) roof.pass();
  const double read = roof.best(Move::kRead), copy = roof.best(Move::kCopy);
  return profile::Device{
      .name = fmt::format("CPU, {}, {} threads; reads {:.1f} GB/s, copies {:.1f} GB/s",
                          isa_name(isa), threads, read / 1e9, copy / 1e9),
      .bytes_per_s = std::max(read, copy),
      .cores = threads,
      .memory = machine_bytes()};
}

Result<Recording> Recording::of(const std::string& file, std::int64_t warmup, std::int64_t steps,
                                const profile::Device& device) {
  Recording recording({.on = true,
                       .warmup = warmup,
                       .steps = steps,
                       .output = file,
                       .devices = {device},
                       .environment = false});
  if (recording.session_->error()) return cannot_record(*recording.session_->error());
  profile::name_thread("host");
  return recording;
}

Result<std::optional<Recording>> Recording::begin(const Options& options, const Ranks* ranks,
                                                  Screen& screen) {
  if (!wants_recording(options)) return std::optional<Recording>();
  profile::Options asked;
  asked.on = true;
  asked.warmup = options.profile_warmup;
  asked.steps = options.profile_steps;
  if (!options.profile.empty()) asked.output = options.profile;
  if (ranks != nullptr) {
    asked.rank = ranks->rank();
    asked.ranks = ranks->size();
  }
  TRY(profile::Device device, this_machine(options, screen));
  asked.devices.push_back(std::move(device));
  std::optional<Recording> recording = Recording(asked);
  if (recording->session_->error()) return cannot_record(*recording->session_->error());
  recording->rescue_ = std::make_unique<Rescue>(*recording->session_);
  profile::name_thread("host");
  return recording;
}

Result<std::string> Recording::end() {
  rescue_.reset();
  profile::Report report = session_->finish();
  if (report.error) return cannot_record(*report.error);
  return std::move(report.summary);
}

}  // namespace culprit::lab
