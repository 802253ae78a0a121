// What recording costs a decode step of the laboratory's engine: steps that are recorded and steps
// that are not take turns in one process, in a drawn order, the host launching each kernel.
//   lab_profile_overhead [TURNS] [PRESET]        at least 300; tiny-glm-5
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "culprit/profile.h"
#include "lab/engine/engine.h"
#include "lab/model/random_model.h"
#include "paired.h"

namespace lab = culprit::lab;
namespace profile = culprit::profile;

namespace {

constexpr int kWarmUp = 20;

int fail(const std::string& why) {
  std::fprintf(stderr, "lab_profile_overhead: %s\n", why.c_str());
  return 2;
}

double micros_of_step(lab::Engine& engine) {
  const culprit::Nanos begin = lab::Launcher::now();
  static_cast<void>(engine.step());
  return static_cast<double>(lab::Launcher::now() - begin) / 1e3;
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

// A request that lasts for all steps.
culprit::Result<std::unique_ptr<lab::Engine>> engine_for(const lab::Weights& weights, int steps) {
  lab::EngineOptions options;
  options.isa = lab::best_isa();
  options.launch = lab::LaunchMode::kEager;
  options.longest = options.pool_tokens = steps + 2;
  TRY(auto engine, lab::Engine::make(weights, options));
  lab::Request request;
  request.prompt = {1};
  request.new_tokens = steps + 1;
  TRY([[maybe_unused]] const std::size_t number, engine->submit(request));
  return engine;
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = std::max(300, argc > 1 ? std::atoi(argv[1]) : 600);
  const std::string preset = argc > 2 ? argv[2] : "tiny-glm-5";
  const auto config = lab::preset(preset);
  if (!config.ok()) return fail(config.error().what);
  const int threads = static_cast<int>(lab::usable_cores().size());
  const auto random = lab::random_weights({*config, lab::Scheme::kBf16, 1}, {}, threads);
  if (!random.ok()) return fail(random.error().what);
  const std::string file = "/tmp/lab_profile_overhead-" + std::to_string(getpid()) + ".json.gz";
  profile::Session session(recording(turns, file));
  if (!session.on()) return fail(session.error()->text());
  auto engine = engine_for(random->weights, kWarmUp + 2 * turns);
  if (!engine.ok()) return fail(engine.error().what);
  for (int i = 0; i < kWarmUp; ++i) static_cast<void>(micros_of_step(**engine));
  std::vector<double> off, on;
  std::mt19937 draw(1);
  for (int turn = 0; turn < turns; ++turn) {
    const bool recorded_first = (draw() & 1U) != 0;
    for (const bool recorded : {recorded_first, !recorded_first}) {
      if (recorded)
        session.resume();
      else
        session.pause();
      (recorded ? on : off).push_back(micros_of_step(**engine));
    }
  }
  const profile::Report report = session.finish();
  std::remove(file.c_str());
  if (report.steps != turns || report.lost != 0)
    return fail("not all was recorded: " + report.summary);
  std::printf("%s, %d threads: %d turns, steps of %.1f us (median) with %.0f events\n",
              preset.c_str(), threads, turns, median_of(off).middle,
              static_cast<double>(report.events) / turns);
  show("recorded against off:", on, off);
  return 0;
}
