#include "cli/parse.h"

#include <fmt/format.h>

#include <optional>

#include "base/near.h"
#include "base/usage.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/flags.h"

namespace culprit::cli {
namespace {

Error not_in_this_version(std::string_view word) {
  return usage(fmt::format("{} is not in this version ({})", word, version()),
               "`culprit help` lists what is");
}

std::string given_as(const Flag& flag) {
  std::string out = "--" + std::string(flag.name);
  if (flag.takes == Takes::kValue) out += " " + std::string(flag.value);
  return out;
}

// Tools beside ours parse their own command lines.
bool keeps_its_words(const Command& command) {
  return command.id == CommandId::kForge || command.id == CommandId::kLab;
}

class Parser {
 public:
  explicit Parser(std::span<const std::string_view> args) : args_(args) {}

  Result<Settings> run() {
    for (; next_ < args_.size(); ++next_) {
      const std::string_view arg = args_[next_];
      const bool is_flag = !only_words_ && arg.size() > 1 && arg.starts_with('-');
      Status status = Ok{};
      if (!is_flag) {
        status = take_word(arg);
      } else if (arg == "--") {
        only_words_ = true;
      } else {
        status = take_flag(arg);
      }
      if (!status.ok()) return status.error();
      if (settings_.command != nullptr && keeps_its_words(*settings_.command)) {
        for (++next_; next_ < args_.size(); ++next_) settings_.words.emplace_back(args_[next_]);
        return settings_;
      }
    }
    return finish();
  }

 private:
  Status take_word(std::string_view word) {
    if (!settings_.command && settings_.words.empty() && !only_words_) {
      if (const Command* command = find_command(word)) {
        if (command->id == CommandId::kLater) {
          return not_in_this_version(fmt::format("the command \"{}\"", word));
        }
        settings_.command = command;
        return Ok{};
      }
    }
    settings_.words.emplace_back(word);
    return Ok{};
  }

  Status take_flag(std::string_view arg) {
    const bool is_long = arg.starts_with("--");
    const std::size_t equals = is_long ? arg.find('=') : std::string_view::npos;
    const std::string_view name = arg.substr(0, equals).substr(is_long ? 2 : 1);
    const Flag* flag = is_long ? find_flag(name) : find_short_flag(name);
    if (flag == nullptr) {
      return usage(fmt::format("unknown flag \"{}\"", arg.substr(0, equals)),
                   did_you_mean(arg.substr(0, equals), flag_names(), "`culprit -h` lists them"));
    }
    if (flag->name == "help") {
      settings_.help = is_long ? Help::kLong : Help::kShort;
      return Ok{};
    }
    if (flag->set == nullptr) return not_in_this_version("--" + std::string(name));
    used_.push_back(flag);
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) value = arg.substr(equals + 1);
    return take_value(*flag, value);
  }

  Status take_value(const Flag& flag, std::optional<std::string_view> value) {
    if (flag.takes == Takes::kNothing && value) {
      return usage(fmt::format("--{} takes no value", flag.name), given_as(flag));
    }
    const bool more = next_ + 1 < args_.size();
    const std::string_view following = more ? args_[next_ + 1] : std::string_view();
    const bool is_word = more && (following == "-" || !following.starts_with('-'));
    if (flag.takes == Takes::kValue && !value) {
      if (!is_word) {
        return usage(fmt::format("--{} needs a value", flag.name),
                     fmt::format("{}: {}", given_as(flag), flag.hint));
      }
      value = following;
      ++next_;
    }
    if (flag.takes == Takes::kOptionalValue && !value && is_word) {
      // Whether this word is the value is known when all words are: see finish().
      const bool is_command = !settings_.command && settings_.words.empty() && pending_.empty() &&
                              find_command(following) != nullptr;
      if (!is_command) {
        pending_.push_back({following, &flag, settings_.words.size()});
        ++next_;
      }
    }
    if (!flag.set(settings_, value.value_or(std::string_view()))) {
      return usage(fmt::format("--{}: \"{}\" is not right", flag.name, value.value_or("")),
                   fmt::format("{}: {}", given_as(flag), flag.hint));
    }
    return Ok{};
  }

  // `--json X`: X is the file if the traces are given as well, else it is a trace.
  void settle_optional_values() {
    const CommandId id = settings_.command ? settings_.command->id : CommandId::kDiagnose;
    const std::size_t needed = id == CommandId::kCompare || id == CommandId::kSql ? 2 : 1;
    std::size_t put = 0;
    for (const Pending& pending : pending_) {
      if (settings_.words.size() >= needed) {
        pending.flag->set(settings_, pending.value);
        continue;
      }
      const auto at = static_cast<std::ptrdiff_t>(pending.words_before + put++);
      settings_.words.insert(settings_.words.begin() + at, std::string(pending.value));
    }
  }

  Result<Settings> finish() {
    settle_optional_values();
    const bool about = settings_.about();
    if (settings_.command == nullptr) {
      settings_.command = about ? find_command("help") : &default_command();
      if (about) settings_.words.clear();
    }
    if (about) return settings_;
    for (const Flag* flag : used_) {
      if ((flag->commands & settings_.command->flags) == 0) {
        return usage(
            fmt::format("--{} does not apply to \"{}\"", flag->name, settings_.command->name),
            fmt::format("`culprit help {}` lists its flags", settings_.command->name));
      }
    }
    const Status words = check_words();
    if (!words.ok()) return words.error();
    const bool changes = !settings_.remove.empty() || !settings_.scale.empty() || settings_.graph ||
                         settings_.no_sync;
    if (settings_.command->id == CommandId::kWhatIf && !changes) {
      return usage("nothing to change", "--remove WHAT, --scale REGEX=F, --graph or --no-sync");
    }
    const bool named = !settings_.kernel.empty() || !settings_.suspect.empty();
    if (settings_.command->id == CommandId::kExplain && !named) {
      return usage("nothing to explain", "--kernel REGEX or --suspect ID");
    }
    return settings_;
  }

  Status check_words() const {
    const CommandId id = settings_.command->id;
    const std::size_t count = settings_.words.size();
    if (id == CommandId::kCompare) return check_pair();
    if (id == CommandId::kSql) return check_query();
    if (id == CommandId::kSlice) return check_slice();
    if (id == CommandId::kFleet && count != 1)
      return usage(count == 0 ? std::string("no folder given")
                              : fmt::format("{} folders given; fleet takes one", count),
                   "culprit fleet DIR");
    const bool reads_a_trace = id == CommandId::kDiagnose || id == CommandId::kTable ||
                               id == CommandId::kWhatIf || id == CommandId::kExplain ||
                               id == CommandId::kFloor;
    if (!reads_a_trace) return Ok{};
    if (count == 0 && id == CommandId::kFloor) return Ok{};
    if (count == 0) {
      return usage("no trace given", fmt::format("culprit {} TRACE", settings_.command->name));
    }
    if (count == 1) return Ok{};
    const std::string& first = settings_.words.front();
    const bool like_a_word = first.find_first_of("./-") == std::string::npos;
    if (like_a_word && !near_names(first, command_names()).empty()) {
      return usage(fmt::format("unknown command \"{}\"", first),
                   did_you_mean(first, command_names(), ""));
    }
    return Ok{};  // whether the others are captures is known when they are read
  }

  Status check_query() const {
    const std::size_t count = settings_.words.size();
    const bool about_tables = count > 0 && is_about_tables(settings_.words.back());
    if (settings_.csv && settings_.json)
      return usage("--csv and --json are two forms of one answer", "give one of them");
    if (count >= 2 || about_tables) return Ok{};
    return usage(
        count == 0 ? "no trace and no query given" : "no query given",
        "culprit sql TRACE \"SELECT * FROM summary\"; `culprit sql .tables` lists the tables");
  }

  Status check_slice() const {
    const std::size_t count = settings_.words.size();
    if (count == 0) return usage("no trace given", "culprit slice TRACE --step N -o FILE");
    if (count > 1) return usage("slice cuts one trace at a time", "give each rank's in turn");
    if (settings_.output.empty())
      return usage("no file for the slice", "-o FILE, or -o - for stdout");
    const int chosen =
        (settings_.step ? 1 : 0) + (settings_.steps ? 1 : 0) + (settings_.around.empty() ? 0 : 1);
    if (chosen == 0 && !settings_.layer)
      return usage("nothing to cut out", "--step N, --steps A..B, --layer N or --around SUSPECT");
    if (chosen > 1)
      return usage("--step, --steps and --around each name a step", "give one of them");
    if (settings_.layer && settings_.steps)
      return usage("--layer is a part of one step", "--step N instead of --steps");
    return Ok{};
  }

  Status check_pair() const {
    const std::size_t count = settings_.words.size();
    if (count == 2) return Ok{};
    return usage(count == 0   ? std::string("no recordings given")
                 : count == 1 ? std::string("one recording given; compare needs two")
                              : fmt::format("{} recordings given; compare takes two", count),
                 count > 2 ? "several ranks: put the traces of each side in a folder of its own"
                           : "culprit compare BEFORE AFTER");
  }

  std::span<const std::string_view> args_;
  std::size_t next_ = 0;
  bool only_words_ = false;
  Settings settings_;
  std::vector<const Flag*> used_;
  // Words behind flags that may or may not take a value.
  struct Pending {
    std::string_view value;
    const Flag* flag = nullptr;
    std::size_t words_before = 0;
  };
  std::vector<Pending> pending_;
};

}  // namespace

bool is_about_tables(std::string_view query) {
  return query.starts_with('.') && query.find('/') == std::string_view::npos;
}

Result<Settings> parse(std::span<const std::string_view> args) { return Parser(args).run(); }

}  // namespace culprit::cli
