// The forge on its own, for those who need traces and not the detective.
#include <string_view>
#include <vector>

#include "forge/forge.h"

int main(int argc, char** argv) {
  const std::vector<std::string_view> args(argv + 1, argv + argc);
  return culprit::forge::main(args, stdout, stderr);
}
