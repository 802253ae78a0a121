// What recording costs: steps of about 2 ms with 1,000 spans each, all on one thread, so that every
// nanosecond of theirs is on the critical path. Three kinds of step take turns in one process, in a
// drawn order: without spans, with spans that are off, with spans that are recorded.
//   profile_overhead [TURNS]        at least 300
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "culprit/profile.h"
#include "paired.h"

namespace profile = culprit::profile;

namespace {

constexpr int kKernels = 333;  // each with its launch and operator: 999 spans, and the step

std::vector<float> weights(4096, 0.5F), input(4096, 0.25F);

// About 6 us from the first-level cache.
float dot(int turns) {
  float sum = 0;
  for (int turn = 0; turn < turns; ++turn) {
    std::array<float, 16> part{};
    for (std::size_t i = 0; i < weights.size(); i += part.size())
      for (std::size_t k = 0; k < part.size(); ++k) part[k] += weights[i + k] * input[i + k];
    sum += std::accumulate(part.begin(), part.end(), 0.0F);
    input[static_cast<std::size_t>(turn)] = sum * 1e-9F;
  }
  return sum;
}

float bare_step(int turns) {
  float sum = 0;
  for (int i = 0; i < kKernels; ++i) sum += dot(turns);
  return sum;
}

float marked_step(int turns) {
  using profile::kBf16, profile::kFloat;
  const profile::Step step({.batch = 8, .tokens = 8});
  float sum = 0;
  for (int i = 0; i < kKernels; ++i) {
    const profile::Op op("aten::mm", kBf16(8, 6144), kFloat(6144, 576));
    const profile::Launch launch;
    const profile::Kernel kernel(launch.ticket(), "dot", {.grid = {64, 1, 1}, .bytes = 32'768});
    sum += dot(turns);
  }
  return sum;
}

double micros_of(float (*step)(int), int turns, float& sum) {
  const auto begin = std::chrono::steady_clock::now();
  sum += step(turns);
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

int turns_of_two_ms(float& sum) {
  double best = 1e9;
  for (int i = 0; i < 20; ++i) best = std::min(best, micros_of(bare_step, 1, sum));
  return std::max(1, static_cast<int>(std::lround(2000 / best)));
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = std::max(300, argc > 1 ? std::atoi(argv[1]) : 600);
  float sum = 0;
  const int work = turns_of_two_ms(sum);
  const std::string file = "/tmp/profile_overhead-" + std::to_string(getpid()) + ".json.gz";
  profile::Options options;
  options.on = true;
  options.environment = false;
  options.warmup = 10;
  options.steps = turns;
  options.output = file;
  options.buffer_bytes = static_cast<std::size_t>(turns) * 1000 * 160;
  profile::Session session(options);
  if (!session.on()) {
    std::fprintf(stderr, "profile_overhead: %s\n", session.error()->text().c_str());
    return 2;
  }
  for (int i = 0; i < 10; ++i) sum += marked_step(work);
  std::vector<double> bare, off, on;
  std::mt19937 random(1);
  for (int turn = 0; turn < turns; ++turn) {
    std::array<int, 3> order{0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    for (const int kind : order) {
      if (kind == 2)
        session.resume();
      else
        session.pause();
      (kind == 0   ? bare
       : kind == 1 ? off
                   : on)
          .push_back(micros_of(kind == 0 ? bare_step : marked_step, work, sum));
    }
  }
  const profile::Report report = session.finish();
  std::remove(file.c_str());
  if (report.steps != turns || report.lost != 0) {
    std::fprintf(stderr, "profile_overhead: not all was recorded: %s\n", report.summary.c_str());
    return 1;
  }
  std::printf("%d turns; steps of %.1f us with %d spans (median; checksum %g)\n", turns,
              median_of(bare).middle, 3 * kKernels + 1, static_cast<double>(sum));
  const double recorded = show("recorded against off:", on, off);
  show("recorded against no spans:", on, bare);
  show("off against no spans:", off, bare);
  std::printf("a recorded span costs %.1f ns (medians of paired differences)\n",
              1000 * recorded / (3 * kKernels + 1));
  return 0;
}
