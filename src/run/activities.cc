#include <algorithm>
#include <bit>

#include "known/kernel_name.h"
#include "run/chapters.h"

namespace culprit::run {
namespace {

// Finds the group of an activity: a hash over name, grid, block and kind into run.groups.
class GroupIndex {
 public:
  GroupIndex(const store::Trace& trace, std::vector<Group>& groups)
      : trace_(trace),
        groups_(groups),
        slots_(64, kEmpty),
        decoded_(trace.strings.size(), kEmpty) {}

  GroupId group_of(std::size_t row) {
    if (2 * (groups_.size() + 1) > slots_.size()) grow();
    std::size_t at = hash(row) & (slots_.size() - 1);
    while (slots_[at] != kEmpty && !same(groups_[slots_[at]], row))
      at = (at + 1) & (slots_.size() - 1);
    if (slots_[at] == kEmpty) {
      slots_[at] = static_cast<std::uint32_t>(groups_.size());
      add(row);
    }
    return GroupId{slots_[at]};
  }

 private:
  static constexpr std::uint32_t kEmpty = 0xffffffffU;

  static std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
    return std::rotl((h ^ value) * 0x9e3779b97f4a7c15U, 29);
  }
  static std::uint64_t packed(const store::Dim3& d) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(d[0])) * 0x1000193U * 0x1000193U +
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(d[1])) * 0x1000193U +
           static_cast<std::uint32_t>(d[2]);
  }
  std::size_t hash(std::size_t row) const {
    const auto& t = trace_.device;
    std::uint64_t h = mix(static_cast<std::uint64_t>(t.kind[row]), t.name[row].index);
    h = mix(mix(h, packed(t.grid[row])), packed(t.block[row]));
    return static_cast<std::size_t>(h >> 16);
  }
  std::size_t hash(const Group& g) const { return hash(first_row_[index_of(g)]); }
  std::size_t index_of(const Group& g) const {
    return static_cast<std::size_t>(&g - groups_.data());
  }
  bool same(const Group& g, std::size_t row) const {
    const auto& t = trace_.device;
    return g.name == t.name[row] && g.grid == t.grid[row] && g.block == t.block[row] &&
           g.device_kind == t.kind[row];
  }
  void grow() {
    slots_.assign(4 * slots_.size(), kEmpty);
    for (const Group& g : groups_) {
      std::size_t at = hash(g) & (slots_.size() - 1);
      while (slots_[at] != kEmpty) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = static_cast<std::uint32_t>(index_of(g));
    }
  }
  void add(std::size_t row) {
    const auto& t = trace_.device;
    Group g;
    g.name = t.name[row];
    g.device_kind = t.kind[row];
    g.grid = t.grid[row];
    g.block = t.block[row];
    if (g.device_kind == store::DeviceKind::kMemcpy) g.kind = known::Owner::kMemcpy;
    if (g.device_kind == store::DeviceKind::kMemset) g.kind = known::Owner::kMemset;
    if (g.device_kind == store::DeviceKind::kGraph) g.kind = known::Owner::kGraph;
    if (g.device_kind == store::DeviceKind::kKernel) {
      std::uint32_t& known_as = decoded_[g.name.index];  // decoding is the dear part: once a name
      g.info = known_as == kEmpty ? known::decode_kernel(trace_.strings[g.name])
                                  : groups_[known_as].info;
      known_as = static_cast<std::uint32_t>(groups_.size());
      g.kind = g.info.kind;
    }
    groups_.push_back(std::move(g));
    first_row_.push_back(row);
  }

  const store::Trace& trace_;
  std::vector<Group>& groups_;
  std::vector<std::size_t> first_row_;  // by group
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint32_t> decoded_;  // by StringId: a group of that kernel name
};

// Some versions of ROCm's tracer write grids in work-items instead of blocks. Blocks are a multiple
// of the block's size by chance only, work-items always.
void read_grids(Run& run) {
  constexpr int kEnough = 16;  // groups by which chance is ruled out
  if (!run.trace->info.rocm) return;
  int groups = 0;
  for (const Group& g : run.groups) {
    if (g.grid == store::Dim3{} || g.block == store::Dim3{}) continue;
    for (std::size_t d = 0; d < g.grid.size(); ++d)
      if (g.block[d] <= 0 || g.grid[d] % g.block[d] != 0) return;
    ++groups;
  }
  if (groups < kEnough) return;
  for (Group& g : run.groups)
    for (std::size_t d = 0; d < g.grid.size(); ++d)
      if (g.block[d] > 0) g.grid[d] /= g.block[d];
  add_note(run, "grid-in-work-items", store::Severity::kInfo, groups,
           "every grid is a multiple of its block: they are read as work-items and divided by the "
           "block");
}

}  // namespace

void collect_activities(Run& run, const Links& links) {
  const store::Trace& trace = *run.trace;
  const auto& table = trace.device;
  RowList rows;
  rows.reserve(table.size());
  std::int64_t out_of_range = 0;
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table.device[row] != run.device ||
        trace.threads[table.thread[row].index].rank != run.rank ||
        process_of(trace, links, store::DeviceRow(row)) != run.process)
      continue;
    if (table.begin[row] < -kLongest || table.begin[row] > kLongest)
      ++out_of_range;
    else
      rows.push_back(static_cast<std::uint32_t>(row));
  }
  if (out_of_range > 0)
    add_note(run, "bad-number", store::Severity::kDataLoss, out_of_range,
             counted(out_of_range, "device activity", "device activities") +
                 " left out: their times lie more than 73 years from the others'");
  merge_runs(rows, [&](auto a, auto b) { return table.begin[a] < table.begin[b]; });

  GroupIndex index(trace, run.groups);
  run.activities.reserve(rows.size());
  for (const std::uint32_t row : rows) {
    Activity activity;
    activity.begin = table.begin[row];
    activity.end = end_of(activity.begin, table.dur[row]);
    activity.row = store::DeviceRow{row};
    activity.group = index.group_of(row);
    Group& group = run.groups[activity.group.index];
    if (group.activities++ == 0) group.first = ActivityId{run.activities.size()};
    activity.kind = group.kind;
    run.activities.push_back(activity);
  }
  read_grids(run);
}

}  // namespace culprit::run
