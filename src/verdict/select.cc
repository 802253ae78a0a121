#include "verdict/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/near.h"
#include "base/usage.h"

namespace culprit::verdict {
namespace {

// std::regex recurses once per character: longer names are matched by their beginning.
constexpr std::size_t kMostMatched = 4096;

bool finds(const std::regex& pattern, std::string_view name) {
  name = name.substr(0, kMostMatched);
  return std::regex_search(name.begin(), name.end(), pattern);
}

}  // namespace

Result<std::vector<std::size_t>> kernels_matching(const evidence::Evidence& evidence,
                                                  const Verdict& verdict,
                                                  const std::string& expression) {
  std::regex pattern;
  try {
    pattern = std::regex(expression, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    return usage(fmt::format("\"{}\" is not a regular expression: {}", expression, error.what()),
                 "quote special characters: \\( \\[ \\*");
  }
  std::vector<std::size_t> kernels;
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const run::Group& group = evidence.run->groups[evidence.kernels[i].group.index];
    if (finds(pattern, evidence.run->trace->strings.or_empty(group.name)) ||
        finds(pattern, group.info.short_name)) {
      kernels.push_back(i);
    }
  }
  if (!kernels.empty()) return kernels;
  std::vector<std::string> ids;
  for (const Suspect& suspect : verdict.suspects) ids.push_back(suspect.id);
  return usage(fmt::format("\"{}\" fits no suspect and no kernel of this run", expression),
               did_you_mean(expression, ids, "`culprit kernels TRACE --all` lists the kernels"));
}

const Suspect* suspect_named(const Verdict& verdict, std::string_view id) {
  const auto found = std::find_if(verdict.suspects.begin(), verdict.suspects.end(),
                                  [&](const Suspect& suspect) { return suspect.id == id; });
  return found == verdict.suspects.end() ? nullptr : &*found;
}

}  // namespace culprit::verdict
