// Floors beside the budget: every floor and every owner once, and nothing guessed.
#include "evidence/floor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace culprit::evidence {
namespace {

using known::Component;
using known::Owner;

known::Floor floor_with_every_component() {
  known::Floor floor;
  for (int i = 0; i < known::kComponentCount; ++i) {
    known::FloorPart part;
    part.component = static_cast<Component>(i);
    part.ns = Nanos{1} << i;
    floor.step += part.ns;
    floor.parts.push_back(part);
  }
  return floor;
}

std::vector<BudgetRow> budget_of_every_owner() {
  std::vector<BudgetRow> budget;
  for (int i = 0; i < known::kOwnerCount; ++i) {
    budget.push_back({static_cast<Owner>(i), Nanos{1} << i, 0, 0});
  }
  return budget;
}

TEST(StepFloor, EveryComponentAndEveryOwnerIsInOneRow) {
  const known::Floor floor = floor_with_every_component();
  for (const bool experts : {true, false}) {
    std::vector<BudgetRow> budget = budget_of_every_owner();
    if (!experts) budget.erase(budget.begin() + static_cast<int>(Owner::kMoeGemm));
    Nanos spent = 0, floors = 0, measured = 0;
    for (const BudgetRow& row : budget) spent += row.ns_per_step;
    std::set<Component> components;
    std::set<Owner> owners;
    std::size_t named = 0;
    for (const Distance& row : distances(floor, budget)) {
      floors += row.floor;
      measured += row.measured;
      components.insert(row.components.begin(), row.components.end());
      owners.insert(row.owners.begin(), row.owners.end());
      named += row.components.size();
      EXPECT_EQ(row.together.empty(), row.components.size() < 2) << row.name;
    }
    EXPECT_EQ(floors, floor.step);
    EXPECT_EQ(measured, spent);
    EXPECT_EQ(components.size(), static_cast<std::size_t>(known::kComponentCount));
    EXPECT_EQ(named, components.size());
    EXPECT_EQ(owners.size(), budget.size());
  }
}

// Experts whose kernels are plain matrix products share the row of those.
TEST(StepFloor, ExpertsWithoutKernelsOfTheirOwnAreNotToldApart) {
  const std::vector<BudgetRow> budget = {{Owner::kGemm, 900, 1, 10}};
  const auto rows = distances(floor_with_every_component(), budget);
  const auto experts = std::find_if(rows.begin(), rows.end(), [](const Distance& row) {
    return std::count(row.components.begin(), row.components.end(), Component::kExperts) > 0;
  });
  ASSERT_NE(experts, rows.end());
  EXPECT_EQ(experts->name, "matrix products");
  EXPECT_EQ(experts->measured, 900);
}

}  // namespace
}  // namespace culprit::evidence
