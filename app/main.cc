#include "app/origin.h"
#include "cli/cli.h"
#include "forge/forge.h"
#include "lab/tool/lab.h"

int main(int argc, char** argv) {
  return culprit::cli::main(argc, argv,
                            {.forge = {culprit::forge::main, culprit::forge::describe},
                             .lab = {culprit::lab::main, culprit::lab::describe},
                             .commit = culprit::kCommit,
                             .date = culprit::kCommitDate});
}
