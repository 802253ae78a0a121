// Markdown as GitHub reads it. Whatever stands in a name of a trace is shown as it is: none of it is
// markup, HTML, a formula, a link, the mention of a person or an issue, or the end of a table's cell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace culprit::report {

std::string markdown_text(std::string_view words);                // on one line
std::string markdown_row(const std::vector<std::string>& cells);  // of a table; cells are Markdown

}  // namespace culprit::report
