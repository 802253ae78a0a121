# culprit_embed(TARGET FILE SYMBOL): FILE's text as `extern const std::string_view culprit::known::SYMBOL`.
function(culprit_embed target file symbol)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.cc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  # A raw string literal may hold 64 KiB at most in some compilers; split on lines keeps each piece small.
  string(REPLACE "\n" "\n)~~\" R\"~~(" text "${text}")
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
"// Made from @file@ at build time.
#include <string_view>
namespace culprit::known {
extern const std::string_view @symbol@;
const std::string_view @symbol@ = R\"~~(@text@)~~\";
}
")
  target_sources(${target} PRIVATE ${out})
endfunction()
