// Why a late rank is late: the largest part of what it needed more than the others. Where that is work
// on the device, its kernels are held against those of the same name on the other ranks: more calls or
// larger grids are more work, the same grids in more time are slow kernels.
#pragma once

#include <span>

#include "evidence/rank_skew.h"

namespace culprit::evidence {

// Fills cause, sign, kernel_ratio and work_ratio of every rank that came last somewhere.
void find_causes(std::span<const RankRecord* const> records, Skew& skew);

}  // namespace culprit::evidence
