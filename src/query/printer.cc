#include "query/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/json_parts.h"
#include "report/json_writer.h"
#include "report/views.h"

namespace culprit::query {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

// As SQLite writes it: a whole number keeps its point.
std::string real_text(double value) {
  if (!std::isfinite(value)) return value > 0 ? "Inf" : "-Inf";
  std::string text = fmt::format("{:.15g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string plain(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return {};
    case Value::Kind::kInteger:
      return std::to_string(value.integer);
    case Value::Kind::kReal:
      return real_text(value.real);
    case Value::Kind::kText:
      return text::valid_utf8(value.bytes);
    case Value::Kind::kBlob:
      break;
  }
  return hex(value.bytes);
}

class CsvPrinter : public Printer {
 public:
  explicit CsvPrinter(const std::vector<std::string>& columns) : columns_(columns) {}
  void row(const Statement& statement, std::string& out) override {
    head(out);
    for (std::size_t c = 0; c < columns_.size(); ++c)
      field(plain(statement.value(c)), c + 1 == columns_.size(), out);
  }
  void end(std::string& out) override { head(out); }

 private:
  void head(std::string& out) {
    if (begun_) return;
    begun_ = true;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      field(text::valid_utf8(columns_[c]), c + 1 == columns_.size(), out);
  }
  static void field(const std::string& text, bool last, std::string& out) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
      out += text;
    } else {
      out += '"';
      for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
      }
      out += '"';
    }
    out += last ? '\n' : ',';
  }
  std::vector<std::string> columns_;
  bool begun_ = false;
};

class JsonPrinter : public Printer {
 public:
  JsonPrinter(const std::vector<std::string>& columns, const std::string& document)
      : columns_(columns), document_(document) {}
  void row(const Statement& statement, std::string& out) override {
    head(out);
    out += rows_++ == 0 ? "\n    " : ",\n    ";
    report::JsonWriter w;
    w.begin_array({}, report::JsonLayout::kLine);
    for (std::size_t c = 0; c < columns_.size(); ++c) write(w, statement.value(c));
    w.end();
    add(w, out);
  }
  void end(std::string& out) override {
    head(out);
    out += rows_ == 0 ? "]\n}\n" : "\n  ]\n}\n";
  }

 private:
  void head(std::string& out) {
    if (begun_) return;
    begun_ = true;
    out += document_;
    out += ",\n  \"columns\": ";
    report::JsonWriter w;
    w.begin_array({}, report::JsonLayout::kLine);
    for (const std::string& column : columns_) w.text({}, column);
    w.end();
    add(w, out);
    out += ",\n  \"rows\": [";
  }
  static void write(report::JsonWriter& w, const Value& value) {
    constexpr int kDigits = 15;
    switch (value.kind) {
      case Value::Kind::kNull:
        return w.null({});
      case Value::Kind::kInteger:
        return w.integer({}, value.integer);
      case Value::Kind::kReal:
        return w.number({}, value.real, kDigits);
      case Value::Kind::kText:
        return w.text({}, value.bytes);
      case Value::Kind::kBlob:
        return w.text({}, hex(value.bytes));
    }
  }
  static void add(report::JsonWriter& w, std::string& out) {
    std::string text = w.take();
    text.pop_back();  // the line break
    out += text;
  }
  std::vector<std::string> columns_;
  std::string document_;
  std::size_t rows_ = 0;
  bool begun_ = false;
};

class TablePrinter : public Printer {
 public:
  TablePrinter(const std::vector<std::string>& columns, const report::TextOptions& options)
      : options_(options), numeric_(columns.size(), true) {
    for (const std::string& column : columns) columns_.push_back(safe(column));
  }
  void row(const Statement& statement, std::string& out) override {
    std::vector<std::string> cells;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const Value value = statement.value(c);
      const bool number = value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kReal;
      if (!begun_) numeric_[c] = numeric_[c] && (number || value.kind == Value::Kind::kNull);
      cells.push_back(number ? plain(value) : safe(plain(value)));
    }
    if (begun_) return line(cells, out);
    held_.push_back(std::move(cells));
    if (held_.size() == kMeasured) flush(out);
  }
  void end(std::string& out) override { flush(out); }

 private:
  static constexpr std::size_t kMeasured = 1'000;
  static constexpr int kWidest = 60;

  std::string safe(std::string_view text) const {
    std::string clean = text::clean(text);
    if (!options_.unicode) clean = text::ascii(clean);
    return options_.all ? clean : text::shorten_middle(clean, kWidest, options_.unicode);
  }

  void flush(std::string& out) {
    if (begun_) return;
    begun_ = true;
    for (const std::string& column : columns_) widths_.push_back(text::display_width(column));
    for (const auto& cells : held_)
      for (std::size_t c = 0; c < cells.size(); ++c)
        widths_[c] = std::max(widths_[c], text::display_width(cells[c]));
    line(columns_, out);
    std::vector<std::string> rule;
    for (const int width : widths_) rule.emplace_back(static_cast<std::size_t>(width), '-');
    line(rule, out);
    for (const auto& cells : held_) line(cells, out);
    held_.clear();
  }

  void line(const std::vector<std::string>& cells, std::string& out) const {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) out += "  ";
      const bool last = c + 1 == cells.size();
      if (numeric_[c]) {
        out += text::pad_left(cells[c], widths_[c]);
      } else {
        out += last ? cells[c] : text::pad_right(cells[c], widths_[c]);
      }
    }
    out += '\n';
  }

  report::TextOptions options_;
  std::vector<std::string> columns_;
  std::vector<bool> numeric_;
  std::vector<int> widths_;
  std::vector<std::vector<std::string>> held_;
  bool begun_ = false;
};

}  // namespace

std::string document_head(const report::Answer& answer) {
  report::JsonWriter w;
  report::begin_document(w, "sql");
  w.begin_object("quality", report::JsonLayout::kBlock);
  w.boolean("usable", !answer.failure);
  w.begin_array("notes", report::JsonLayout::kBlock);
  for (const store::Note& note : report::all_notes(answer)) report::write_note(w, note);
  w.end();
  w.end();
  std::string head = w.take();
  head.pop_back();  // the line break
  return head;
}

std::unique_ptr<Printer> make_printer(Form form, const std::vector<std::string>& columns,
                                      const report::TextOptions& options,
                                      const std::string& document) {
  if (form == Form::kCsv) return std::make_unique<CsvPrinter>(columns);
  if (form == Form::kJson) return std::make_unique<JsonPrinter>(columns, document);
  return std::make_unique<TablePrinter>(columns, options);
}

}  // namespace culprit::query
