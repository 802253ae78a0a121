// Several threads at once, held against what the test itself wrote down while it ran.
#include <atomic>
#include <barrier>
#include <map>
#include <random>
#include <thread>

#include "unit/profile_trace.h"

namespace culprit::profile {
namespace {

// What a thread did: operators by name, with the one around each; kernels by name, with the operator
// that launched each. Names are unique.
struct Notes {
  std::map<std::string, std::string> op_in, kernel_of;
};

struct Task {
  Ticket ticket;
  Name name;
};

class Host {
 public:
  Host(int index, std::uint64_t seed) : random_(seed), index_(index) {}
  // A random nest of operators and launches; what is launched goes to `tasks`.
  void work(int depth, const std::string& around, std::vector<Task>& tasks) {
    const int calls = static_cast<int>(random_() % 4);
    for (int i = 0; i < calls; ++i) {
      const std::string name = std::to_string(index_) + "." + std::to_string(++spans_);
      if (random_() % 2 == 0 && depth < 5) {
        const Op op(intern("op" + name), kBf16(spans_, depth));
        notes.op_in["op" + name] = around;
        work(depth + 1, "op" + name, tasks);
      } else {
        const Launch launch;
        notes.kernel_of["k" + name] = around;
        tasks.push_back({launch.ticket(), intern("k" + name)});
      }
    }
  }
  Notes notes;

 private:
  std::mt19937_64 random_;
  int index_ = 0, spans_ = 0;
};

TEST(Threads, ManyHostsAndStreamsLeaveExactlyWhatTheyDid) {
  constexpr int kHosts = 3, kStreams = 2, kSteps = 12;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    const Folder folder;
    Session session(options_for(folder, 0, kSteps));
    std::vector<Host> hosts;
    for (int h = 0; h < kHosts; ++h)
      hosts.emplace_back(h, seed * 100 + static_cast<std::uint64_t>(h));
    for (int s = 0; s < kSteps; ++s) {
      const Step step(intern("s" + std::to_string(s)));
      std::vector<std::vector<Task>> tasks(kHosts);
      std::vector<std::thread> threads;
      for (std::size_t h = 1; h < kHosts; ++h)
        threads.emplace_back([&, h] { hosts[h].work(0, "", tasks[h]); });
      hosts[0].work(0, "", tasks[0]);
      for (std::thread& thread : threads) thread.join();
      threads.clear();
      for (int stream = 0; stream < kStreams; ++stream) {
        threads.emplace_back([&, stream] {
          for (std::size_t h = 0; h < kHosts; ++h)
            for (std::size_t i = 0; i < tasks[h].size(); ++i)
              if (static_cast<int>(i) % kStreams == stream)
                const Kernel kernel(tasks[h][i].ticket, tasks[h][i].name, {.stream = stream});
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    const Report report = session.finish();
    ASSERT_FALSE(report.error) << report.error->text();
    ASSERT_EQ(report.steps, kSteps) << report.summary;
    const Trace trace = parse(report.trace);

    Notes expected, got;
    for (const Host& host : hosts) {
      expected.op_in.insert(host.notes.op_in.begin(), host.notes.op_in.end());
      expected.kernel_of.insert(host.notes.kernel_of.begin(), host.notes.kernel_of.end());
    }
    std::map<std::int64_t, std::string> op_of;  // External id -> name
    std::map<std::int64_t, std::int64_t> frame_parent;
    for (const Json& op : trace.all("cpu_op")) op_of[op["args"]["External id"]] = op["name"];
    for (const Json& frame : trace.all("python_function")) {
      const Json& parent = frame["args"]["Python parent id"];
      frame_parent[frame["args"]["Python id"]] = parent.is_null() ? 0 : parent.get<std::int64_t>();
    }
    for (const auto& [id, name] : op_of) got.op_in[name] = op_of[frame_parent[2 * id] / 2];
    for (const Json& kernel : trace.all("kernel")) {
      const std::int64_t op = kernel["args"].value("External id", std::int64_t{0});
      EXPECT_TRUE(got.kernel_of.emplace(kernel["name"], op == 0 ? "" : op_of[op]).second);
    }
    EXPECT_EQ(got.op_in, expected.op_in) << seed;
    EXPECT_EQ(got.kernel_of, expected.kernel_of) << seed;
    EXPECT_GT(expected.op_in.size(), 20U) << "the draw is worth a test";
  }
}

TEST(Threads, SpansOfThreadsThatRunOnWhileTheWindowEndsAreSafe) {
  const Folder folder;
  Session session(options_for(folder, 1, 5));
  std::atomic<bool> done{false};
  std::barrier ready(3);
  const auto churn = [&] {
    ready.arrive_and_wait();
    while (!done.load()) {
      const Op op("beside");
      run_kernel("beside");
    }
  };
  std::thread first(churn), second(churn);
  ready.arrive_and_wait();
  for (int i = 0; i < 50; ++i) {
    const Step step(Mark{.batch = 1});
    run_kernel("own");
  }
  done = true;
  first.join();
  second.join();
  const Report report = session.finish();
  ASSERT_FALSE(report.error) << report.error->text();
  EXPECT_EQ(report.steps, 5);
  int own = 0;
  for (const Json& kernel : parse(report.trace).all("kernel"))
    own += kernel["name"] == "own" ? 1 : 0;
  EXPECT_EQ(own, 5);
}

TEST(Threads, EachHasItsOwnIds) {
  const Folder folder;
  Session session(options_for(folder, 0, 1));
  {
    const Step step(Mark{.batch = 1});
    for (int t = 0; t < 20; ++t) {
      std::thread([] {
        for (int i = 0; i < 10; ++i) {
          const Op op("o");
          run_kernel("k");
        }
      }).join();
    }
  }
  const Trace trace = parse(session.finish().trace);
  std::map<std::int64_t, int> ids;
  for (const Json& op : trace.all("cpu_op")) ++ids[op["args"]["External id"]];
  for (const Json& call : trace.all("cuda_runtime")) ++ids[call["args"]["correlation"]];
  EXPECT_EQ(ids.size(), 400U);
}

}  // namespace
}  // namespace culprit::profile
