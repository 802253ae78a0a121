// What recording costs a decode step of the laboratory's engine: steps that are recorded and steps
// that are not take turns in one process, in a drawn order, the host launching each kernel.
//   lab_profile_overhead [TURNS [FLAGS OF LAB BENCH]]        at least 300; --preset tiny-glm-5
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "culprit/profile.h"
#include "lab/tool/decoding.h"
#include "lab/tool/model.h"
#include "paired.h"

namespace lab = culprit::lab;
namespace profile = culprit::profile;

namespace {

constexpr int kWarmUp = 20;

int fail(const std::string& why) {
  std::fprintf(stderr, "lab_profile_overhead: %s\n", why.c_str());
  return 2;
}

profile::Options recording(int turns, const std::string& file) {
  profile::Options options;
  options.on = true;
  options.environment = false;
  options.warmup = kWarmUp;
  options.steps = turns;
  options.output = file;
  options.buffer_bytes = static_cast<std::size_t>(turns) * 1000 * 160;
  return options;
}

culprit::Result<lab::Options> options_of(int argc, char** argv) {
  std::vector<std::string_view> words{"bench", "--launch", "eager"};
  words.insert(words.end(), argv + std::min(argc, 2), argv + argc);
  if (argc <= 2) words.insert(words.end(), {"--preset", "tiny-glm-5"});
  return lab::parse(words);
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = std::max(300, argc > 1 ? std::atoi(argv[1]) : 600);
  const auto options = options_of(argc, argv);
  if (!options.ok()) return fail(options.error().what + ": " + options.error().hint);
  lab::LoadedModel model;
  const culprit::Status loaded = lab::load_model(*options, model);
  if (!loaded.ok()) return fail(loaded.error().what);
  const std::string file = "/tmp/lab_profile_overhead-" + std::to_string(getpid()) + ".json.gz";
  profile::Session session(recording(turns, file));
  if (!session.on()) return fail(session.error()->text());
  const auto decoding = lab::Decoding::make(*options, *model.weights, nullptr,
                                            {.reading = options->readings.back(),
                                             .batch = options->batch.front(),
                                             .context = options->context.front(),
                                             .steps = kWarmUp + 2 * turns});
  if (!decoding.ok()) return fail(decoding.error().what);
  for (int i = 0; i < kWarmUp; ++i) static_cast<void>((*decoding)->step());
  std::vector<double> off, on;
  std::mt19937 draw(1);
  for (int turn = 0; turn < turns; ++turn) {
    const bool recorded_first = (draw() & 1U) != 0;
    for (const bool recorded : {recorded_first, !recorded_first}) {
      if (recorded)
        session.resume();
      else
        session.pause();
      const double micros = static_cast<double>((*decoding)->step().time) / 1e3;
      (recorded ? on : off).push_back(micros);
    }
  }
  const profile::Report report = session.finish();
  std::remove(file.c_str());
  if (report.steps != turns || report.lost != 0)
    return fail("not all was recorded: " + report.summary);
  std::printf("%s: %d turns, steps of %.1f us (median) with %.0f events\n", model.name.c_str(),
              turns, median_of(off).middle, static_cast<double>(report.events) / turns);
  show("recorded against off:", on, off);
  return 0;
}
