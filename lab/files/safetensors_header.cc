#include "lab/files/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lab/model/json.h"

namespace culprit::lab {
namespace {

constexpr std::size_t kHeaderBegins = 8;

// Three levels deep: {name: {field: value or [numbers]}}; what "__metadata__" holds is passed over.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  bool null() override { return scalar("null"); }
  bool boolean(bool /*value*/) override { return scalar("a truth value"); }
  bool number_integer(number_integer_t /*value*/) override { return scalar("a negative number"); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return scalar("a broken number");
  }
  bool binary(binary_t& /*value*/) override { return scalar("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (metadata_) return true;
    if (list_ == nullptr) return scalar("a number");
    list_->push_back(value);
    return true;
  }
  bool string(string_t& text) override {
    if (metadata_) return true;
    if (depth_ != 2 || field_ != "dtype") return scalar("a string");
    entries_.back().dtype = std::move(text);
    return true;
  }
  bool start_object(std::size_t /*elements*/) override {
    if (!metadata_ && (depth_ > 1 || list_ != nullptr)) return scalar("an object");
    ++depth_;
    field_.clear();
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    if (metadata_) return true;
    if (depth_ != 2 || list_ != nullptr) return scalar("a list");
    HeaderEntry& entry = entries_.back();
    if (field_ == "shape")
      list_ = &entry.shape;
    else if (field_ == "data_offsets")
      list_ = &entry.offsets;
    else
      return scalar("a list");
    return true;
  }
  bool end_array() override {
    list_ = nullptr;
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == 1) {
      metadata_ = text == "__metadata__";
      if (!metadata_) entries_.push_back({std::move(text), {}, {}, {}});
    } else if (!metadata_) {
      field_ = std::move(text);
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*what*/) override {
    error_ = {
        Error::Code::kBadInput, "the header is no valid JSON",
        fmt::format("{}: byte {}", file_, kHeaderBegins + std::max<std::size_t>(position, 1) - 1),
        "the file is damaged or was not written completely; fetch it again"};
    return false;
  }

  Result<std::vector<HeaderEntry>> take() {
    if (error_) return *error_;
    return std::move(entries_);
  }

 private:
  // Whatever the form has no place for; a scalar within the metadata is nobody's business.
  bool scalar(std::string_view what) {
    if (metadata_) return true;
    const std::string_view name = entries_.empty() ? "" : std::string_view(entries_.back().name);
    error_ = {Error::Code::kBadInput,
              depth_ == 0 ? fmt::format("the header is {}, not an object", what)
                          : fmt::format("tensor \"{}\" has {} where \"dtype\", \"shape\" and "
                                        "\"data_offsets\" belong",
                                        name, what),
              fmt::format("{}: byte {}", file_, kHeaderBegins),
              "the file is damaged; fetch it again"};
    return false;
  }

  const std::string& file_;
  std::vector<HeaderEntry> entries_;
  std::vector<std::uint64_t>* list_ = nullptr;  // that numbers now belong to
  std::string field_;
  int depth_ = 0;
  bool metadata_ = false;  // within the value of "__metadata__"
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<HeaderEntry>> parse_safetensors_header(std::string_view text,
                                                          const std::string& file) {
  Reader reader(file);
  Json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace culprit::lab
