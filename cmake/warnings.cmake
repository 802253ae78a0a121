# culprit_target(NAME): the flags that every target of ours gets.
function(culprit_target name)
  target_compile_options(${name} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
    -Woverloaded-virtual -Wcast-qual -Wformat=2 -Wundef -Wdouble-promotion
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond>
    $<$<BOOL:${CULPRIT_WERROR}>:-Werror>)
  target_compile_definitions(${name} PRIVATE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
  if(CULPRIT_PCH)  # a cold build takes a quarter less; caches cannot keep it, and GCC warns falsely with it at -O2
    target_precompile_headers(${name} PRIVATE <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional>
      <span> <string> <string_view> <utility> <vector> <fmt/format.h>)
  endif()
  if(CULPRIT_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=${CULPRIT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${name} PUBLIC -fsanitize=${CULPRIT_SANITIZE})
  endif()
  if(CULPRIT_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
