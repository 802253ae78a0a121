#include "cli/redact.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/public_files.h"
#include "known/models.h"

namespace culprit::cli {
namespace {

constexpr std::string_view kNone;

std::string small(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_between(char c) { return c == '-' || c == '_' || c == '.'; }
bool in_word(char c) { return is_letter(c) || is_digit(c) || is_between(c); }

std::string with_slashes(std::string_view path) {
  std::string out(path);
  std::replace(out.begin(), out.end(), '\\', '/');
  return out;
}

std::string_view base_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// ".py"; of "trace.json.gz" ".json.gz" with `double_one`; empty where there is none that looks like one.
std::string_view ending_of(std::string_view base, bool double_one = false) {
  constexpr std::size_t kLongest = 9;
  const std::size_t dot = base.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return kNone;
  const std::string_view ending = base.substr(dot);
  const bool plain = ending.size() > 1 && ending.size() <= kLongest && is_letter(ending[1]) &&
                     std::all_of(ending.begin() + 1, ending.end(),
                                 [](char c) { return is_letter(c) || is_digit(c); });
  if (!plain) return kNone;
  const bool packed = ending == ".gz" || ending == ".zst";
  if (double_one && packed && base.substr(0, dot).ends_with(".json")) return base.substr(dot - 5);
  return ending;
}

// Names of users that many have, and words that evidence is made of.
bool is_everyones(std::string_view word) {
  constexpr std::array<std::string_view, 28> kWords{
      "root",    "user", "users", "ubuntu",    "admin",  "runner", "nobody",
      "guest",   "test", "home",  "kernel",    "stream", "step",   "decode",
      "prefill", "copy", "graph", "model",     "models", "host",   "python",
      "default", "cast", "gemm",  "attention", "norm",   "device", "memory"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end() || is_public_package(word);
}

bool ends_token(char c) {
  return std::string_view(" \t\r\n\"'`()<>[]{},;|=").find(c) != std::string_view::npos;
}

// A piece of a sentence that is a path: begins like one, or has folders and ends like a file.
bool is_path(std::string_view token) {
  const bool drive = token.size() > 2 && is_letter(token[0]) && token[1] == ':' &&
                     (token[2] == '\\' || token[2] == '/');
  if (drive || token.starts_with("~/") || token.starts_with("./") || token.starts_with("../"))
    return true;
  const std::string path = with_slashes(token);
  const auto slashes = std::count(path.begin(), path.end(), '/');
  const bool has_ending = !ending_of(base_of(path)).empty();
  if (path.starts_with('/')) return slashes > 1 || has_ending;
  return slashes > 0 && has_ending;
}

// The end of the token that begins at `first`: a colon ends it, but for that of a drive.
std::size_t token_end(std::string_view text, std::size_t first) {
  std::size_t last = first;
  while (last < text.size() && !ends_token(text[last])) {
    const bool drive = last == first + 1 && is_letter(text[first]) && last + 1 < text.size() &&
                       (text[last + 1] == '\\' || text[last + 1] == '/');
    if (text[last] == ':' && !drive) break;
    ++last;
  }
  return last;
}

// "a.py" and the rest of "a.py(639): forward"; none: no such frame.
std::optional<std::size_t> end_of_file(std::string_view frame) {
  const std::size_t colon = frame.find("): ");
  if (colon == std::string_view::npos || frame.front() == '<') return std::nullopt;
  const std::size_t open = frame.rfind('(', colon);
  if (open == std::string_view::npos || open == 0 || open + 1 == colon) return std::nullopt;
  const std::string_view line = frame.substr(open + 1, colon - open - 1);
  return std::all_of(line.begin(), line.end(), is_digit) ? std::optional(open) : std::nullopt;
}

constexpr std::string_view kModule = "nn.Module: ";

using Numbered = std::map<std::string, std::string, std::less<>>;

// The name that `key` has, or the next one: PREFIX, a number, ENDING.
std::string numbered(Numbered& names, std::string_view key, std::string_view prefix,
                     std::string_view ending) {
  const auto known = names.find(key);
  if (known != names.end()) return known->second;
  std::string name = fmt::format("{}{}{}", prefix, names.size() + 1, ending);
  return names.emplace(key, std::move(name)).first->second;
}

// `name` in place of `path`, where that stands by itself.
void replace_whole(std::string_view path, std::string_view name, std::string& sentence) {
  std::size_t at = sentence.find(path);
  while (at != std::string::npos) {
    const std::size_t end = at + path.size();
    const bool whole =
        (at == 0 || !(in_word(sentence[at - 1]) || sentence[at - 1] == '/')) &&
        (end == sentence.size() || !(in_word(sentence[end]) && sentence[end] != '.'));
    if (whole) sentence.replace(at, path.size(), name);
    at = sentence.find(path, at + (whole ? name.size() : 1));
  }
}

}  // namespace

Redactor::Redactor() {
  for (const known::Model& model : known::models()) hide_model(model.name);
}

void Redactor::hide(std::string_view word, std::string_view as) {
  constexpr std::size_t kShortest = 3;
  const std::string key = small(word);
  if (key.size() < kShortest || is_everyones(key)) return;
  hidden_.emplace(key, as);
  const auto* const end = std::find_if(key.data(), key.data() + key.size(), is_between);
  first_pieces_.emplace(key.data(), static_cast<std::size_t>(end - key.data()));
}

void Redactor::hide_model(std::string_view name) {
  const std::string slashed = with_slashes(name);
  hide(base_of(slashed), "model");
}

void Redactor::learn(const std::string& given) {
  const std::string path = with_slashes(given);
  for (const std::string_view home : {"/home/", "/Users/", "/torchinductor_"}) {
    for (std::size_t at = path.find(home); at != std::string::npos; at = path.find(home, at + 1)) {
      const std::size_t first = at + home.size();
      hide(std::string_view(path).substr(first, path.find('/', first) - first), "user");
    }
  }
  // torch.profiler's own exporter: HOST_PID.TIME.pt.trace.json
  const std::string_view base = base_of(path);
  const std::size_t end = base.find(".pt.trace.json");
  if (end == std::string_view::npos) return;
  std::string_view host = base.substr(0, end);
  while (!host.empty() && (is_digit(host.back()) || host.back() == '.')) host.remove_suffix(1);
  if (host.ends_with('_')) hide(host.substr(0, host.size() - 1), "host");
}

std::string Redactor::file_name(std::string_view base) {
  return numbered(files_, base, "file", ending_of(base));
}

std::string Redactor::folder_name(std::string_view folder) {
  return numbered(folders_, folder, "folder", {});
}

std::string Redactor::class_name(std::string_view name) {
  return numbered(classes_, name, "Module", {});
}

std::string Redactor::trace_name(const std::string& path) {
  if (path == "-" || path.empty()) return path;
  const std::string slashed = with_slashes(path);
  return numbered(traces_, path, "trace", ending_of(base_of(slashed), /*double_one=*/true));
}

std::string Redactor::path(std::string_view given) {
  const std::string path = with_slashes(given);
  const std::string_view base = base_of(path);
  if (const auto part = public_part(path)) {
    std::string out = (part->size() < path.size() ? ".../" : "") + std::string(*part);
    if (part->find("models/") == std::string_view::npos) return words(out);
    return out.substr(0, out.size() - base.size()) + file_name(base);
  }
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return public_files_.count(base) > 0 ? std::string(base) : file_name(base);
  const std::string folder = folder_name(std::string_view(path).substr(0, slash));
  return base.empty() ? folder : folder + "/" + file_name(base);
}

std::string Redactor::frame(std::string_view name) {
  if (const auto end = end_of_file(name))
    return path(name.substr(0, *end)) + words(name.substr(*end));
  if (!name.starts_with(kModule)) return text(name);
  // Classes are named after models: one name for each, its number stays.
  const std::string_view rest = name.substr(kModule.size());
  const std::size_t number = std::min(rest.rfind('_'), rest.size());
  return std::string(kModule) + class_name(rest.substr(0, number)) +
         std::string(rest.substr(number));
}

std::string Redactor::call_from(std::string_view place) {
  const std::size_t colon = std::min(place.rfind(':'), place.size());
  if (colon == 0 || place.front() == '<') return words(place);
  return path(place.substr(0, colon)) + std::string(place.substr(colon));
}

// Of a word the longest hidden one at each piece; an organisation in front of a model goes with it.
std::string Redactor::words(std::string_view text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins =
        in_word(text[at]) && (at == 0 || !in_word(text[at - 1]) || is_between(text[at - 1]));
    if (!begins || is_between(text[at])) {
      out += text[at++];
      continue;
    }
    std::size_t piece = at, token = at;
    while (piece < text.size() && in_word(text[piece]) && !is_between(text[piece])) ++piece;
    std::size_t found = 0;
    const std::string* as = nullptr;
    if (first_pieces_.count(small(text.substr(at, piece - at))) > 0) {
      while (token < text.size() && in_word(text[token])) ++token;
      for (std::size_t end = token; end >= piece && as == nullptr; --end) {
        const auto hidden = hidden_.find(small(text.substr(at, end - at)));
        const bool whole = end == token || is_between(text[end]);
        if (whole && hidden != hidden_.end()) {
          found = end;
          as = &hidden->second;
        }
      }
    }
    if (as == nullptr) {
      out += text.substr(at, piece - at);
      at = piece;
      continue;
    }
    if (*as == "model" && out.ends_with('/')) {
      out.pop_back();
      while (!out.empty() && in_word(out.back())) out.pop_back();
    }
    out += *as;
    at = found;
  }
  return out;
}

std::string Redactor::text(std::string_view given) {
  std::string sentence(given);
  for (const auto& [path, name] : traces_) replace_whole(path, name, sentence);
  std::string out;
  std::size_t kept = 0;  // up to here it is in `out`
  for (std::size_t first = 0; first < sentence.size();) {
    std::size_t last = token_end(sentence, first);
    const std::size_t next = std::max(last, first + 1);
    while (last > first && sentence[last - 1] == '.') --last;
    const std::string_view token = std::string_view(sentence).substr(first, last - first);
    if (is_path(token)) {
      out += words(std::string_view(sentence).substr(kept, first - kept)) + path(token);
      kept = last;
    }
    first = next;
  }
  return out + words(std::string_view(sentence).substr(kept));
}

}  // namespace culprit::cli
