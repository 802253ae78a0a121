// Sampling: from logits to a token. The draw depends on the request's seed and on how many tokens it
// has generated, and on nothing else: not on its batch, its neighbours or the threads.
// Order: temperature, the top_k best, of these the fewest whose probabilities reach top_p, the draw.
// Equal logits: the lower token first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace culprit::lab {

struct Sampling {
  double temperature = 0;  // 0: the best token, always
  std::int64_t top_k = 0;  // 0: all
  double top_p = 1;
  std::uint64_t seed = 0;
};

class Sampler {
 public:
  explicit Sampler(std::int64_t vocab);  // for one thread at a time
  // The token after `generated` earlier ones. Allocates nothing; linear in the vocabulary, and the
  // candidates are sorted where top_k or top_p ask for an order.
  std::int32_t operator()(std::span<const float> logits, const Sampling& sampling,
                          std::int64_t generated);

 private:
  struct Candidate {
    double weight = 0;  // probability up to a factor
    std::int32_t token = 0;
  };
  static bool before(const Candidate& a, const Candidate& b) {
    return a.weight > b.weight || (a.weight == b.weight && a.token < b.token);
  }
  std::size_t keep_top_p(std::size_t kept, double top_p);

  std::vector<Candidate> candidates_;
};

// Uniform in [0, 1): the `index`th number of the stream that `seed` names.
double uniform(std::uint64_t seed, std::uint64_t index);

}  // namespace culprit::lab
