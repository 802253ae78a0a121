// The yardstick of bench/compare.py: a plain simdjson On-Demand program that loads a trace and walks its events once, reading
// the category of each, and prints "events kernels".
// Usage: simdjson_walk FILE            the whole file at once, one thread
//        simdjson_walk FILE THREADS    in chunks of 2 MB that are cut at event starts, each walked as an array of its own
#include <simdjson.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using simdjson::ondemand::parser;

struct Counts {
  long events = 0;
  long kernels = 0;
};

template <class Array>
Counts walk(Array events) {
  Counts counts;
  for (auto event : events) {
    ++counts.events;
    std::string_view category;
    if (event["cat"].get(category) == simdjson::SUCCESS && category == "kernel") ++counts.kernels;
  }
  return counts;
}

int whole(const char* path) {
  const simdjson::padded_string json = simdjson::padded_string::load(path);
  parser walker;
  simdjson::ondemand::document document = walker.iterate(json);
  const Counts counts = walk(document["traceEvents"].get_array());
  std::printf("%ld %ld\n", counts.events, counts.kernels);
  return 0;
}

// An event starts at '{' on a line of its own or at the start of a line, as Kineto and the forge write it.
std::size_t event_start(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('{', from); at != std::string_view::npos;
       at = text.find('{', at + 1)) {
    const std::size_t key = text.find_first_not_of(" \n\r\t", at + 1);
    if (key != std::string_view::npos && text.substr(key, 4) == "\"ph\"") return at;
  }
  return text.size();
}

int chunked(const char* path, int threads) {
  constexpr std::size_t kChunk = std::size_t{2} << 20;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::string text(static_cast<std::size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const std::size_t end = text.rfind(']');
  std::vector<std::size_t> cuts;
  for (std::size_t at = event_start(text, text.find("\"traceEvents\"")); at < end;
       at = event_start(text, at + kChunk))
    cuts.push_back(at);
  cuts.push_back(end);
  std::atomic<std::size_t> next{0};
  std::vector<Counts> totals(static_cast<std::size_t>(threads));
  std::vector<std::thread> pool;
  for (Counts& total : totals) {
    pool.emplace_back([&] {
      parser walker;
      std::string copy;
      for (std::size_t i = next++; i + 1 < cuts.size(); i = next++) {
        copy.assign("[").append(text, cuts[i], cuts[i + 1] - cuts[i]);
        while (copy.back() == ',' || copy.back() == ' ' || copy.back() == '\n') copy.pop_back();
        copy.push_back(']');
        const std::size_t size = copy.size();
        copy.resize(size + simdjson::SIMDJSON_PADDING);
        simdjson::ondemand::document document = walker.iterate(copy.data(), size, copy.size());
        const Counts counts = walk(document.get_array());
        total.events += counts.events;
        total.kernels += counts.kernels;
      }
    });
  }
  for (std::thread& t : pool) t.join();
  Counts sum;
  for (const Counts& t : totals) sum.events += t.events, sum.kernels += t.kernels;
  std::printf("%ld %ld\n", sum.events, sum.kernels);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: simdjson_walk FILE [THREADS]\n");
    return 2;
  }
  try {
    return argc == 2 ? whole(argv[1]) : chunked(argv[1], std::max(1, std::atoi(argv[2])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simdjson_walk: %s\n", error.what());
    return 2;
  }
}
