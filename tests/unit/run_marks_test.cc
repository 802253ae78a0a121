#include "run/marks.h"

#include <gtest/gtest.h>

namespace culprit::run {
namespace {

struct Named {
  const char* name;
  StepKind kind;
  std::int64_t batch, tokens;  // -1: not told
};

class MarkNames : public ::testing::TestWithParam<Named> {};

TEST_P(MarkNames, TellKindBatchAndTokens) {
  const Named& expected = GetParam();
  const auto mark = read_mark(expected.name);
  ASSERT_TRUE(mark) << expected.name;
  EXPECT_NE(mark->level, MarkLevel::kCapture) << expected.name;
  EXPECT_EQ(mark->kind, expected.kind) << expected.name;
  EXPECT_EQ(mark->batch.value_or(-1), expected.batch) << expected.name;
  EXPECT_EQ(mark->tokens.value_or(-1), expected.tokens) << expected.name;
}

INSTANTIATE_TEST_SUITE_P(
    OfEngines, MarkNames,
    ::testing::Values(
        Named{"ProfilerStep#134", StepKind::kUnknown, -1, -1},
        Named{"step[DECODE bs=64]", StepKind::kDecode, 64, 64},
        Named{"step[EXTEND bs=2 toks=14721]", StepKind::kPrefill, 2, 14721},
        Named{"step[MIXED bs=5 c=1 g=4 c_sq=512 c_sk=900 g_sq=4 g_sk=800]", StepKind::kMixed, 5,
              -1},
        Named{"step[MIXED bs=2]", StepKind::kMixed, 2, -1},
        Named{"step[EXTEND bs=2 toks=600 c_sq=600 c_sk=900]", StepKind::kPrefill, 2, 600},
        Named{"step[DECODE bs=16 g_sq=16 g_sk=65536]", StepKind::kDecode, 16, 16},
        Named{"step[SPLIT_PREFILL bs=1 toks=512]", StepKind::kPrefill, 1, 512},
        Named{"step[PREBUILT bs=3]", StepKind::kPrefill, 3, -1},
        Named{"step[TARGET_VERIFY bs=4]", StepKind::kVerify, 4, -1},
        Named{"step[DRAFT_EXTEND_V2 bs=4 toks=12]", StepKind::kDraft, 4, 12},
        Named{"step[SOMETHING_NEW bs=4]", StepKind::kUnknown, 4, -1},
        Named{"step[IDLE]", StepKind::kIdle, -1, -1},
        Named{"step[IDLE bs=0]", StepKind::kIdle, 0, -1},
        Named{"step[TARGET_VERIFY bs=8 sq=32 sk=4096]", StepKind::kVerify, 8, -1},
        Named{"step[DRAFT_EXTEND bs=8]", StepKind::kDraft, 8, -1},
        Named{"step[DRAFT_LOOP raw_bs=3 bs=4 topk=1]", StepKind::kDraft, 3, -1},
        Named{"execute_context_2(14721)_generation_0(0)", StepKind::kPrefill, 2, 14721},
        Named{"execute_context_1(888_788544)_generation_0(0)", StepKind::kPrefill, 1, 888},
        Named{"execute_context_0(0)_generation_4(16)", StepKind::kDecode, 4, 16},
        Named{"execute_context_0(0)_generation_0(0)", StepKind::kIdle, 0, 0},
        Named{"execute_8192_context_9(sq8155sk8430sqsq7475785)_generation_37(sq37sk34489)",
              StepKind::kMixed, 46, 8192},
        Named{"execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32)",
              StepKind::kDecode, 32, 32},
        Named{"execute_context_3(77)_generation_5(5)", StepKind::kMixed, 8, 82},
        Named{"execute_1_context_0(sq0sk0sqsq0sqsk0)_generation_1(sq1sk17sqsq1)", StepKind::kDecode,
              1, 1},
        Named{"prefill[bs=1 tok=7 ctx=[128]]", StepKind::kPrefill, 1, 7},
        Named{"decode[bs=4 tok=8 d=2]", StepKind::kDecode, 4, 8},
        Named{"prefill[bs=2 tok=4096 ctx=[0,0]]", StepKind::kPrefill, 2, 4096},
        Named{"decode[bs=117/128 tok=117 d=1]", StepKind::kDecode, 117, 117},
        Named{"[Executor] _forward_step 812: 0 ctx reqs, 0 ctx tokens, 32 gen reqs",
              StepKind::kDecode, 32, 32},
        Named{"[Executor] _forward_step 7: 2 ctx reqs, 900 ctx tokens, 3 gen reqs",
              StepKind::kMixed, 5, 903},
        Named{"[Executor] _forward_step 7: 2 ctx reqs, 0 gen reqs", StepKind::kPrefill, 2, -1},
        Named{"[Executor] _forward_step: 0 ctx reqs, 8 gen reqs", StepKind::kDecode, 8, 8},
        Named{"execute_diffusion_1_1024x1024", StepKind::kUnknown, 1, -1},
        Named{"execute_diffusion_4_512x768", StepKind::kUnknown, 4, -1},
        Named{"gpu_model_runner: forward", StepKind::kUnknown, -1, -1},
        Named{"run_batch", StepKind::kUnknown, -1, -1},
        Named{"v2_gpu_model_runner: forward", StepKind::kUnknown, -1, -1},
        Named{"scheduler.run_batch", StepKind::kUnknown, -1, -1}));

TEST(Marks, TellACapture) {
  for (const char* name : {"capture_32_DECODE", "capture_32_FULL", "capture_128_decode"}) {
    const auto mark = read_mark(name);
    ASSERT_TRUE(mark) << name;
    EXPECT_EQ(mark->level, MarkLevel::kCapture) << name;
  }
}

TEST(Marks, OfOthersAreNone) {
  for (const char* name : {"",
                           "step",
                           "step[",
                           "step[]",
                           "execute_",
                           "execute_context_2",
                           "execute_context_x(1)",
                           "execute_context_1(5)_generation_",
                           "prefill[tok=4]",
                           "decode[bs=x]",
                           "capture_me",
                           "nccl:all_reduce",
                           "[Executor] _forward_step",
                           "[Executor] _forward_step 7: 2 ctx reqs",
                           "[Executor] _fetch_new_requests",
                           "gpu_model_runner: preprocess",
                           "gpu_model_runner: sample",
                           "v2_gpu_model_runner: sample",
                           "_dummy_run",
                           "recv_requests",
                           "process_batch_result",
                           "copy_result_to_cpu",
                           "sglang.vlm.encode",
                           "execute_diffusion",
                           "ProfilerStep",
                           "## forward ##",
                           "execute_99999999999999999999_context_1(1)_generation_0(0)"})
    EXPECT_FALSE(read_mark(name)) << name;
}

}  // namespace
}  // namespace culprit::run
