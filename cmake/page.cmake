# culprit_page(TARGET): the page of --html, bundled from web/ by node, as kPageHead and kPageTail of TARGET. Without node
# and npm, or where the packages cannot be had, both are empty, and --html says what to install.
option(CULPRIT_PAGE "Bundle the page of --html (needs node and npm)" ON)

# Installs the pinned packages of FOLDER unless they are there; sets RESULT.
function(culprit_npm folder result)
  set(${result} FALSE PARENT_SCOPE)
  find_program(CULPRIT_NODE node)
  find_program(CULPRIT_NPM npm)
  if(NOT CULPRIT_NODE OR NOT CULPRIT_NPM)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/package-lock.json)
  file(SHA256 ${folder}/package-lock.json lock)
  set(stamp ${folder}/node_modules/.installed)
  set(installed "")
  if(EXISTS ${stamp})
    file(READ ${stamp} installed)
  endif()
  if(NOT installed STREQUAL lock)
    execute_process(COMMAND ${CULPRIT_NPM} ci --loglevel=error WORKING_DIRECTORY ${folder} RESULT_VARIABLE failed OUTPUT_QUIET)
    if(failed)
      message(WARNING "npm ci failed in ${folder}")
      return()
    endif()
    file(WRITE ${stamp} ${lock})
  endif()
  set(${result} TRUE PARENT_SCOPE)
endfunction()

function(culprit_page target)
  set(web ${PROJECT_SOURCE_DIR}/web)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded/page.cc)
  set(ready FALSE)
  if(CULPRIT_PAGE)
    culprit_npm(${web} ready)
  endif()
  if(ready)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*)
    add_custom_command(OUTPUT ${out} COMMAND ${CULPRIT_NODE} ${web}/build.mjs ${out}
                       DEPENDS ${sources} ${web}/build.mjs ${web}/page.html ${web}/package-lock.json
                       COMMENT "Bundling the page of --html" VERBATIM)
  else()
    message(STATUS "Without the page of --html: it needs node and npm")
    set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded/no_page.cc)
    file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
"#include <string_view>
namespace culprit::report {
extern const std::string_view kPageHead, kPageTail;
const std::string_view kPageHead, kPageTail;
}
")
  endif()
  target_sources(${target} PRIVATE ${out})
endfunction()
