#include "ingest/nsight_text.h"

#include <gtest/gtest.h>

namespace culprit::ingest {
namespace {

TEST(NsightText, ApiNamesLoseTheVersionThatCuptiAppends) {
  EXPECT_EQ(api_name("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(api_name("cudaStreamGetCaptureInfo_v2_v11030"), "cudaStreamGetCaptureInfo_v2");
  EXPECT_EQ(api_name("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync_ptsz");
  for (const char* own : {"cuMemFree_v2", "cuLaunchKernelEx", "_v7000", "name_v70x0", ""})
    EXPECT_EQ(api_name(own), own);
}

TEST(NsightText, CopiesAndSetsAreNamedAsTorchProfilerDoes) {
  EXPECT_EQ(copy_name(1, 0, 2, false), "Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(copy_name(2, 2, 1, false), "Memcpy DtoH (Device -> Pinned)");
  EXPECT_EQ(copy_name(8, 2, 2, false), "Memcpy DtoD (Device -> Device)");
  EXPECT_EQ(copy_name(8, 2, 2, true), "Memcpy PtoP (Device -> Device)");
  EXPECT_EQ(copy_name(10, 2, 2, true), "Memcpy PtoP (Device -> Device)");
  EXPECT_EQ(copy_name(11, 4, 2, false), "Memcpy HtoD (Unified Memory)");
  EXPECT_EQ(copy_name(1, -1, -1, false), "Memcpy HtoD");
  EXPECT_EQ(copy_name(1, 0, 77, false), "Memcpy HtoD (Pageable -> Unknown)");
  EXPECT_EQ(copy_name(-1, -1, -1, false), "Memcpy");
  EXPECT_EQ(copy_name(1'000'000, 2, 2, false), "Memcpy (Device -> Device)");
  EXPECT_EQ(set_name(2), "Memset (Device)");
  EXPECT_EQ(set_name(-1), "Memset (Unknown)");
  EXPECT_EQ(sync_name(3), "Stream Sync");
  EXPECT_EQ(sync_name(99), "Sync");
}

TEST(NsightText, OperatorsOfEmitNvtxAreToldFromMarks) {
  const RangeText op =
      read_range("aten::mm, seq = 7, op_id = 12, sizes = [[2, 3], []], input_op_ids = [(1, 0)]");
  EXPECT_EQ(op.name, "aten::mm");
  EXPECT_EQ(op.sizes, "[[2, 3], []]");
  EXPECT_TRUE(op.is_operator);
  EXPECT_TRUE(read_range("AllToAll4D, seq = 45440, op_id = 991132").is_operator);
  EXPECT_TRUE(read_range("aten::relu").is_operator);
  for (const char* mark : {"ProfilerStep#5, op_id = 3", "step[DECODE bs=64], op_id = 9",
                           "scheduler.run_batch, op_id = 1", "step[DECODE bs=64]", "run_batch"}) {
    const RangeText range = read_range(mark);
    EXPECT_FALSE(range.is_operator) << mark;
    EXPECT_EQ(range.name.find(", op_id"), std::string_view::npos) << mark;
  }
  EXPECT_EQ(read_range("load, seq = many").name, "load, seq = many");  // no field of PyTorch's
  EXPECT_EQ(read_range("aten::mm, op_id = 1, sizes = [[2, 3").sizes, "");
  EXPECT_EQ(read_range("").name, "");
}

TEST(NsightText, PythonFramesKeepFileAndLine) {
  EXPECT_EQ(python_frame("forward", "/app/b.py:639"), "/app/b.py(639): forward");
  EXPECT_EQ(python_frame("forward (/app/b.py:639)", ""), "/app/b.py(639): forward");
  EXPECT_EQ(python_frame("app/b.py(639): forward", "python3.12"), "app/b.py(639): forward");
  EXPECT_EQ(python_frame("/app/b.py:639", ""), "/app/b.py(639): ");
  EXPECT_EQ(python_frame("cudaLaunchKernel", "/usr/lib/libcudart.so.12"), std::nullopt);
  EXPECT_EQ(python_frame("forward", "/app/b.py"), std::nullopt);  // no line: no place
  EXPECT_EQ(python_frame("", ""), std::nullopt);
}

}  // namespace
}  // namespace culprit::ingest
