// Text: figures and names as people read them. Times stay integers until the last digit is printed;
// widths are terminal columns, not bytes. `clean` makes any bytes safe to print: valid UTF-8, no
// control or bidirectional characters. Pure functions; cost linear in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace culprit::text {

enum class TimeUnit : std::uint8_t { kAuto, kNs, kUs, kMs, kS };
std::string_view unit_name(TimeUnit unit, bool unicode);  // "ms"; "us" for µs without unicode

// The unit in which `largest` has one to three digits before the point; kS at most.
TimeUnit unit_for(Nanos largest);
// Digits after the point that give a column, whose largest value is `largest`, 3 to 4 significant
// digits.
int decimals_for(Nanos largest, TimeUnit unit);
// `ns` in `unit` (not kAuto), rounded half away from zero, with thousands separators and without
// the unit's name: "64.6", "1,034.2".
std::string in_unit(Nanos ns, TimeUnit unit, int decimals);
// One value by itself, 3 significant digits, with its unit: "64.6 ms", "828 µs", "1.94 s".
std::string duration(Nanos ns, bool unicode);

std::string count(std::int64_t n);  // "1,641,756"
std::string bytes(std::int64_t n);  // decimal units, 3 significant digits: "856 MB", "12 B"
std::string number(double x);       // 3 significant digits, never an exponent: "1,034", "0.0512"
std::string amount(double x);       // as count() where x is whole, else as number()
std::string fixed(double x, int decimals);  // "1,034.2"
// "69.3 %"; below 1 %: 2 significant digits ("0.05 %"); below 0.001 %: "< 0.001 %".
std::string percent(double share);

// Valid UTF-8 (each broken sequence becomes U+FFFD), nothing removed.
std::string valid_utf8(std::string_view bytes);
// valid_utf8, and: line breaks and tabs become spaces; other control, bidirectional and invisible
// format characters go. For names from a trace, on their way to a terminal.
std::string clean(std::string_view bytes);
// Without unicode: what of `utf8` is not ASCII, as its nearest ASCII ("->" for an arrow, "u" for
// the micro sign), else "?".
std::string ascii(std::string_view utf8);

int display_width(std::string_view utf8);  // terminal columns; wide characters count 2
std::string pad_right(std::string_view utf8, int columns);  // text first, then spaces
std::string pad_left(std::string_view utf8, int columns);   // spaces first
// At most `columns` wide; the middle gives way to "…" ("..." if unicode is false).
std::string shorten_middle(std::string_view utf8, int columns, bool unicode);
// The same for the name of a kernel, an operator or a place in the code, by what it means: folders,
// template arguments, remarks, namespaces, the word kernel and how a kernel loops go, in that order and
// only as far as needed. Then it is cut: a place in front of its line, one long word at a "_".
std::string shorten_name(std::string_view utf8, int columns, bool unicode);
// Lines of at most `columns`, broken at spaces; a longer word is broken where it must.
std::vector<std::string> wrap(std::string_view utf8, int columns);

}  // namespace culprit::text
