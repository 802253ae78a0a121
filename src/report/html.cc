// The page: what web/ was bundled to, with two JSON documents between its head and its tail. The page
// makes elements from them as text; here they only must not end their <script>.
#include <algorithm>

#include "report/drawing.h"
#include "report/report.h"

namespace culprit::report {

// Made by web/build.mjs; empty where there was no node to run it.
extern const std::string_view kPageHead, kPageTail;

namespace {

constexpr std::size_t kMostAnswerBytes = 1'000'000, kFewerKernels = 300;

// JSON has these characters in strings only, where an escape means the same: no tag, comment or
// entity can begin in the text, and no line of a script ends in it.
void append_escaped(std::string_view json, std::string& out) {
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i, 3);
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (json[i] == '>') {
      out += "\\u003e";
    } else if (json[i] == '&') {
      out += "\\u0026";
    } else if (rest == "\xE2\x80\xA8" || rest == "\xE2\x80\xA9") {
      out += rest.back() == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += json[i];
    }
  }
}

void append_data(std::string_view id, std::string_view json, std::string& out) {
  out += "<script type=\"application/json\" id=\"";
  out += id;
  out += "\">";
  append_escaped(json, out);
  out += "</script>\n";
}

}  // namespace

bool can_render_html() { return !kPageHead.empty(); }

std::string render_html(const Answer& answer) {
  JsonLimits limits;
  limits.kernels = answer.usable() ? answer.evidence->kernels.size() : 0;
  std::string document = render_json(answer, std::nullopt, limits);
  if (document.size() > kMostAnswerBytes) {
    limits = {.kernels = std::min(limits.kernels, kFewerKernels),
              .kernels_of_suspect = 100,
              .facts = 1'500,
              .text = 300};
    document = render_json(answer, std::nullopt, limits);
  }
  const std::size_t kernels = limits.kernels;
  const std::string drawing = render_drawing(answer, draw(answer, kernels), kernels);
  std::string page;
  page.reserve(kPageHead.size() + kPageTail.size() + document.size() + drawing.size() + 65'536);
  page += kPageHead;
  append_data("answer", document, page);
  append_data("drawing", drawing, page);
  page += kPageTail;
  return page;
}

}  // namespace culprit::report
