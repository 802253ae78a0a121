// Rows: the pairs of an alignment as a reader wants them: one row for each kernel, its grid and its
// counterpart, summed over all places where they stand; and the places where one kernel became
// several, or several one. Internal to this layer.
#pragma once

#include <vector>

#include "compare/align.h"
#include "compare/compare.h"
#include "compare/pattern.h"

namespace culprit::compare {

struct Row {
  KernelChange shown;
  std::vector<run::GroupId> before, after;                 // groups behind it
  std::vector<std::size_t> before_kernels, after_kernels;  // indices into Evidence::kernels
  Nanos exposed_before = 0, exposed_after = 0;             // per step
  std::int64_t region = -1;  // rows of one region stand at one place between the same neighbours
  Nanos delta() const { return shown.delta(); }
  Nanos exposed() const { return exposed_after - exposed_before; }
  bool kept() const {  // the same kernel on both sides
    return shown.before && shown.after && shown.before->name == shown.after->name;
  }
};

// A place where other kernels stand than before, all as often in a step.
struct Region {
  std::vector<std::size_t> rows;
  std::size_t kernels_before = 0, kernels_after = 0;  // how many kernels stand there
};

struct Rows {
  std::vector<Row> rows;  // largest difference first; ties: by role, then by names
  std::vector<Region> regions;
};

Rows find_rows(const Input& before, const Input& after);

}  // namespace culprit::compare
