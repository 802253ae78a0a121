# Writes OUT (app/origin.h) with the commit of SOURCE and its date, and leaves it alone where nothing changed. Run at each
# build, so that a program never names another commit than its own. Without git, or where SOURCE is no working tree of its
# own (an unpacked archive), there is no commit; the date is then today's, or SOURCE_DATE_EPOCH's.
# cmake -DSOURCE=DIR -DOUT=FILE -P origin.cmake
set(commit "")
string(TIMESTAMP date "%B %d, %Y" UTC)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(ENV{LC_ALL} C)
  execute_process(COMMAND ${GIT} -C ${SOURCE} log -1 "--date=format:%B %d, %Y" --format=%cd
    OUTPUT_VARIABLE committed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(committed)
    set(date "${committed}")
  endif()
endif()
string(REGEX REPLACE " 0" " " date "${date}")  # mdoc writes "December 1"
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
"// Where this program comes from; made at build time.
#pragma once

#include <string_view>

namespace culprit {
inline constexpr std::string_view kCommit = \"@commit@\", kCommitDate = \"@date@\";
}
")
