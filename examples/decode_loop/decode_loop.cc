// A toy decode loop whose one stream is a worker thread, recorded with culprit::profile:
//   CULPRIT_PROFILE_DECODE=1 decode_loop [--steps N] [--cast-pool] [--sample-ms N] [--stall STEP]
// Its faults, which `culprit decode.trace.json.gz` finds: the whole KV pool is converted in every
// layer instead of the rows in use; sampling takes the host N ms; it stands still in one step.
#include <culprit/profile.h>

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace profile = culprit::profile;

namespace {

// Work runs in the order of its launches, on the stream's own thread.
class Stream {
 public:
  void launch(std::function<void()> work) {
    const std::lock_guard hold(lock_);
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }
  void wait() {
    const profile::Wait span;
    std::unique_lock hold(lock_);
    changed_.wait(hold, [this] { return queue_.empty(); });
  }

 private:
  void run(const std::stop_token& stop) {
    profile::name_thread("stream 0");
    std::unique_lock hold(lock_);
    while (changed_.wait(hold, stop, [this] { return !queue_.empty(); })) {
      const std::function<void()> work = std::move(queue_.front());
      hold.unlock();
      work();
      hold.lock();
      queue_.pop_front();
      changed_.notify_all();
    }
  }
  std::mutex lock_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> queue_;
  std::jthread worker_{[this](const std::stop_token& stop) { run(stop); }};
};

constexpr std::size_t kLayers = 8, kWidth = 576, kPoolRows = 8192, kRowsInUse = 64;

struct Model {
  std::vector<float> matrix = std::vector<float>(kWidth * kWidth, 0.001F);
  std::vector<float> hidden = std::vector<float>(kWidth, 1.0F);
  std::vector<std::uint8_t> pool = std::vector<std::uint8_t>(kPoolRows * kWidth, 0x38);  // 1.0
  std::vector<float> keys = std::vector<float>(kPoolRows * kWidth);
};

void convert(Model& m, std::size_t rows) {  // e4m3, of which the toy knows positive normal numbers
  for (std::size_t i = 0; i < rows * kWidth; ++i) {
    const std::uint32_t bits = (m.pool[i] + (120U << 3U)) << 20U;
    std::memcpy(&m.keys[i], &bits, sizeof bits);
  }
}

void attend(Model& m) {
  for (std::size_t row = 0; row < kRowsInUse; ++row)
    for (std::size_t i = 0; i < kWidth; ++i) m.hidden[i] += m.keys[row * kWidth + i] / kRowsInUse;
}

void multiply(Model& m) {
  std::vector<float> out(kWidth);
  for (std::size_t row = 0; row < kWidth; ++row)
    for (std::size_t i = 0; i < kWidth; ++i) out[row] += m.matrix[row * kWidth + i] * m.hidden[i];
  m.hidden.swap(out);
}

// One launch: the host's call, and the kernel that it starts on the stream.
template <class Body>
void launch(Stream& stream, profile::Name kernel, Body body) {
  const profile::Launch call;
  stream.launch([kernel, body, ticket = call.ticket()] {
    const profile::Kernel span(ticket, kernel);
    body();
  });
}

void layer(Model& m, Stream& stream, std::size_t rows) {
  using profile::kE4m3, profile::kFloat;
  {
    const profile::Op op("aten::copy_", kFloat(rows, 1, kWidth), kE4m3(rows, 1, kWidth));
    launch(stream, "convert_kernel", [&m, rows] { convert(m, rows); });
  }
  {
    const profile::Op op("attention", kFloat(1, kWidth), kFloat(rows, 1, kWidth));
    launch(stream, "decode_attention_kernel", [&m] { attend(m); });
  }
  const profile::Op op("aten::linear", kFloat(1, kWidth), kFloat(kWidth, kWidth));
  launch(stream, "gemv_kernel", [&m] { multiply(m); });
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 64, stall = -1, sample_ms = 0;
  std::size_t rows = kRowsInUse;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--cast-pool") == 0) rows = kPoolRows;
    if (i + 1 < argc && std::strcmp(argv[i], "--steps") == 0) steps = std::atoi(argv[++i]);
    if (i + 1 < argc && std::strcmp(argv[i], "--stall") == 0) stall = std::atoi(argv[++i]);
    if (i + 1 < argc && std::strcmp(argv[i], "--sample-ms") == 0) sample_ms = std::atoi(argv[++i]);
  }
  profile::name_thread("decode");
  profile::Options options;
  options.devices = {{.name = "one thread of a CPU", .bytes_per_s = 20e9, .cores = 1}};
  profile::Session session(options);  // CULPRIT_PROFILE_DECODE=1 turns it on
  {
    Model model;
    Stream stream;
    for (int i = 0; i < steps; ++i) {
      const profile::Step step({.batch = 1, .tokens = 1});
      for (std::size_t l = 0; l < kLayers; ++l) layer(model, stream, rows);
      stream.wait();
      const profile::Op sampling("sample");
      std::this_thread::sleep_for(std::chrono::milliseconds(i == stall ? 1000 : sample_ms));
    }
  }
  const profile::Report report = session.finish();
  if (report.error) std::fprintf(stderr, "decode_loop: %s\n", report.error->text().c_str());
  std::fputs(report.summary.c_str(), stdout);
  return report.error ? 1 : 0;
}
