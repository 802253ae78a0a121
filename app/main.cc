#include "cli/cli.h"
#include "forge/forge.h"
#include "lab/tool/lab.h"

int main(int argc, char** argv) {
  return culprit::cli::main(argc, argv, {.forge = culprit::forge::main, .lab = culprit::lab::main});
}
