#include "known/kernel_text.h"

#include <array>

namespace culprit::known {
namespace {

constexpr std::size_t kLongestName = std::size_t{64} * 1024;
constexpr std::string_view kAnonymous = "(anonymous namespace)";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool starts_with(std::string_view text, std::size_t at, std::string_view what) {
  return text.substr(at, what.size()) == what;
}

// Length of Nsight's cast before a template integer, "(unsigned long)" of "(unsigned long)2"; 0 for
// other parentheses.
std::size_t integer_cast(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 10> kCasts = {
      "(int)",  "(unsigned int)", "(long)",      "(unsigned long)",  "(bool)",
      "(char)", "(short)",        "(long long)", "(unsigned short)", "(unsigned char)"};
  for (const std::string_view cast : kCasts) {
    const std::size_t after = at + cast.size();
    if (starts_with(text, at, cast) && after < text.size() &&
        (is_digit(text[after]) || text[after] == '-')) {
      return cast.size();
    }
  }
  return 0;
}

// Nsight's "[lambda(int) (instance 3)]" as "{lambda(int)#3}"; `at` stands on the bracket. Returns
// its length, 0 if it is none.
std::size_t append_nsight_lambda(std::string_view text, std::size_t at, std::string& out) {
  constexpr std::string_view kOpen = "[lambda(";
  constexpr std::string_view kInstance = ") (instance ";
  if (!starts_with(text, at, kOpen)) return 0;
  const std::size_t instance = text.find(kInstance, at);
  const std::size_t close = text.find(']', at);
  if (instance == std::string_view::npos || close == std::string_view::npos || close < instance) {
    return 0;
  }
  const std::size_t number = instance + kInstance.size();
  const std::size_t number_end = text.find(')', number);
  if (number_end == std::string_view::npos || number_end > close) return 0;
  out += "{lambda(";
  out += text.substr(at + kOpen.size(), instance - at - kOpen.size());
  out += ")#";
  out += text.substr(number, number_end - number);
  out += '}';
  return close + 1 - at;
}

std::string one_spelling(std::string_view raw) {
  constexpr std::string_view kUnnamed = "<unnamed>";
  constexpr std::string_view kCallOperator = "operator ()";
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size();) {
    std::size_t used = 0;
    if (raw[i] == '(') {
      used = integer_cast(raw, i);
    } else if (raw[i] == '[') {
      used = append_nsight_lambda(raw, i, out);
    } else if (starts_with(raw, i, kUnnamed)) {
      out += kAnonymous;
      used = kUnnamed.size();
    } else if (starts_with(raw, i, kCallOperator)) {
      out += "operator()";
      used = kCallOperator.size();
    }
    if (used == 0) {
      out += raw[i];
      used = 1;
    }
    i += used;
  }
  return out;
}

// Reads the marks of a mangled name one by one; what is no identifier, no integer and no reference
// is skipped.
class MangledReader {
 public:
  explicit MangledReader(std::string_view text) : text_(text) {}

  // "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi256EEEvPT0_" ->
  // "aiter::add_rmsnorm_quant_kernel<bf16 256>": the qualified name, then identifiers and integers
  // of the rest as words. A true demangler would need unbounded stack and output.
  std::string read() {
    at_ = starts_with(text_, 0, "_ZN") ? 3 : 2;
    while (at_ < text_.size()) step();
    return words_.empty() ? name_ : name_ + '<' + words_ + '>';
  }

 private:
  void step() {
    constexpr std::string_view kBf16 = "DF16b";
    const char c = text_[at_];
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (is_digit(c)) {
      identifier();
    } else if (starts_with(text_, at_, kBf16)) {
      add_word("bf16");
      at_ += kBf16.size();
    } else if (c == 'L' && next >= 'a' && next <= 'z') {
      literal();
    } else if ((c == 'S' || c == 'T') &&
               (is_digit(next) || next == '_' || (next >= 'A' && next <= 'Z'))) {
      const std::size_t end = text_.find('_', at_);
      at_ = end == std::string_view::npos ? text_.size() : end + 1;
    } else {
      if (c == 'I' || c == 'E') in_name_ = in_name_ && name_.empty();
      ++at_;
    }
  }

  void identifier() {
    std::size_t length = 0;
    while (at_ < text_.size() && is_digit(text_[at_]) && length < kLongestName) {
      length = length * 10 + static_cast<std::size_t>(text_[at_++] - '0');
    }
    const std::string_view word = text_.substr(at_, length);
    constexpr std::size_t kShortest = 2;  // an enumerator's value ("E1E") looks like a length
    if (word.size() < kShortest || is_digit(word[0])) return;
    at_ += word.size();
    if (starts_with(word, 0, "_GLOBAL__N_")) return;
    if (!in_name_) return add_word(word);
    if (!name_.empty()) name_ += "::";
    name_ += word;
  }

  void literal() {  // "Li256E", "Lin1E"
    std::size_t end = at_ + 2;
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == 'n')) ++end;
    const std::string_view digits = text_.substr(at_ + 2, end - at_ - 2);
    if (!digits.empty() && !in_name_) add_word(digits);
    at_ = end;
  }

  void add_word(std::string_view word) {
    if (!words_.empty()) words_ += ' ';
    words_ += word;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool in_name_ = true;
  std::string name_;
  std::string words_;
};

bool closes(char open, char close) {
  return (open == '(' && close == ')') || (open == '<' && close == '>') ||
         (open == '{' && close == '}') || (open == '[' && close == ']');
}

// Walks text outside of brackets: calls visit(i) for each character at depth 0 that opens nothing,
// until it returns false. "->" and a '>' inside parentheses ("((8)>(0))") close nothing.
template <class Visit>
void walk_top_level(std::string_view text, std::size_t from, Visit visit) {
  std::string open;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (open.empty() && !visit(i)) return;
    if (c == '(' || c == '<' || c == '{' || c == '[') {
      open.push_back(c);
    } else if (!open.empty() && closes(open.back(), c)) {
      open.pop_back();
    }
  }
}

// The function's own name: after the return type, before the parameters.
std::string_view without_signature(std::string_view text) {
  std::size_t begin = 0;
  std::size_t end = text.size();
  walk_top_level(text, 0, [&](std::size_t i) {
    if (text[i] == ' ') begin = i + 1;
    if (text[i] != '(' || i == begin || starts_with(text, i, kAnonymous)) return true;
    end = i;
    return false;
  });
  return text.substr(begin, end - begin);
}

bool says_nothing(std::string_view base) {
  constexpr std::array<std::string_view, 8> kBlank = {
      "kernel",       "Kernel",       "Kernel2",       "kentry",
      "globalKernel", "kernel_entry", "device_kernel", "trampoline_kernel"};
  for (const std::string_view blank : kBlank) {
    if (base == blank) return true;
  }
  return false;
}

std::string_view base_of(std::string_view head) {
  std::size_t scope = head.rfind("::");
  if (scope == std::string_view::npos) return head;
  if (says_nothing(head.substr(scope + 2)) && scope > 0) {
    const std::size_t outer = head.rfind("::", scope - 1);
    return outer == std::string_view::npos ? head : head.substr(outer + 2);
  }
  return head.substr(scope + 2);
}

}  // namespace

KernelText::KernelText(std::string_view raw) {
  raw = raw.substr(0, kLongestName);
  constexpr std::string_view kDescriptor = ".kd";  // ROCm's symbol of the kernel descriptor
  if (raw.size() > kDescriptor.size() &&
      raw.substr(raw.size() - kDescriptor.size()) == kDescriptor) {
    raw.remove_suffix(kDescriptor.size());
  }
  if (starts_with(raw, 0, "_Z")) {
    name = MangledReader(raw).read();
  } else {
    const std::string whole = one_spelling(raw);
    name = without_signature(whole);
  }
  if (name.empty()) name = raw;
  const std::string_view text = name;
  std::size_t open = text.size();
  walk_top_level(text, 0, [&](std::size_t i) {
    if (text[i] != '<') return true;
    open = i;
    return false;
  });
  head = text.substr(0, open);
  args = open < text.size() ? angle_content(text, open) : std::string_view{};
  base = base_of(head);
}

std::vector<std::string_view> split_arguments(std::string_view args) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    std::string_view piece = args.substr(begin, end - begin);
    while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    while (!piece.empty() && piece.back() == ' ') piece.remove_suffix(1);
    pieces.push_back(piece);
    begin = end + 1;
  };
  walk_top_level(args, 0, [&](std::size_t i) {
    if (args[i] == ',') add(i);
    return true;
  });
  if (begin < args.size()) add(args.size());
  return pieces;
}

std::string_view angle_content(std::string_view text, std::size_t from) {
  const std::size_t open = text.find('<', from);
  if (open == std::string_view::npos) return {};
  const std::string_view inside = text.substr(open + 1);
  std::size_t end = inside.size();
  walk_top_level(inside, 0, [&](std::size_t i) {
    if (inside[i] != '>') return true;
    if (i > 0 && inside[i - 1] == '-') return true;
    end = i;
    return false;
  });
  return inside.substr(0, end);
}

std::optional<int> small_integer(std::string_view text) {
  constexpr std::size_t kMostDigits = 9;
  std::size_t digits = 0;
  int value = 0;
  while (digits < text.size() && is_digit(text[digits]) && digits < kMostDigits) {
    value = value * 10 + (text[digits] - '0');
    ++digits;
  }
  if (digits == 0) return std::nullopt;
  const std::string_view suffix = text.substr(digits);
  const bool whole =
      suffix.empty() || suffix == "u" || suffix == "l" || suffix == "ul" || suffix == "ull";
  return whole ? std::optional<int>(value) : std::nullopt;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace culprit::known
