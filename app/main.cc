#include "cli/cli.h"

int main(int argc, char** argv) { return culprit::cli::main(argc, argv); }
