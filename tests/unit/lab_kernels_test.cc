// Every instruction set of this machine against the reference; the reference against arithmetic done
// by hand.
#include <gtest/gtest.h>

#include <set>

#include "lab/kernels/check.h"
#include "lab/kernels/kernels.h"

namespace culprit::lab {
namespace {

class KernelsOf : public testing::TestWithParam<Isa> {};

TEST_P(KernelsOf, AgreeWithTheReference) {
  for (const KernelCheck& check : check_kernels(GetParam()))
    EXPECT_TRUE(check.ok()) << check.kernel << " (" << check.format << "): " << check.worst
                            << ", tolerance " << check.tolerance << ", " << check.numbers
                            << " numbers";
}

INSTANTIATE_TEST_SUITE_P(Isas, KernelsOf, testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace culprit::lab
