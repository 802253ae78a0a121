// Cores: which of them this process's threads may use, and which one thread keeps to. What a thread
// starts inherits the latter, so the former is looked up once, before any thread keeps to less.
// Without Linux's affinity calls nobody keeps to anything.
#pragma once

#include <vector>

namespace culprit::lab {

const std::vector<int>& usable_cores();  // ascending
// From now on these are all that this process uses: a rank's part. The system may refuse; then all are.
void keep_process_to(const std::vector<int>& cores);

std::vector<int> cores_of_this_thread();
void keep_this_thread_to(const std::vector<int>& cores);

}  // namespace culprit::lab
