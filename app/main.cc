#include "cli/cli.h"
#include "forge/forge.h"

int main(int argc, char** argv) {
  return culprit::cli::main(argc, argv, {.forge = culprit::forge::main});
}
