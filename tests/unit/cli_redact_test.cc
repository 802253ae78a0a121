#include "cli/redact.h"

#include <gtest/gtest.h>

#include "cli/public_files.h"

namespace culprit::cli {
namespace {

TEST(PublicFiles, AreThoseOfLibrariesWhereverTheyLie) {
  EXPECT_EQ(public_part("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"),
            "site-packages/torch/nn/modules/module.py");
  EXPECT_EQ(public_part("/home/x/sglang/python/sglang/srt/layers/moe.py"),
            "sglang/srt/layers/moe.py");
  EXPECT_EQ(public_part("/usr/lib/python3.10/threading.py"), "lib/python3.10/threading.py");
  EXPECT_EQ(public_part("vllm/v1/worker/gpu_model_runner.py"),
            "vllm/v1/worker/gpu_model_runner.py");
  EXPECT_EQ(public_part("threading.py"), "threading.py");
}

TEST(PublicFiles, AreNotThoseInFoldersCalledLikeALibrary) {
  EXPECT_FALSE(public_part("/home/vllm/secret/serve.py"));
  EXPECT_FALSE(public_part("/data/torch/acme/train.py"));
  EXPECT_FALSE(public_part("/opt/venv/lib/python3.11/site-packages/acme/x.py"));
  EXPECT_FALSE(public_part("serve.py"));
}

TEST(Redactor, PathsInSentencesGo) {
  Redactor redactor;
  EXPECT_EQ(redactor.text("cannot open /home/ann/x/run.py here"),
            "cannot open folder1/file1.py here");
  EXPECT_EQ(redactor.text("again /home/ann/x/run.py:12."), "again folder1/file1.py:12.");
  EXPECT_EQ(redactor.text("and C:\\Users\\ann\\run.py"), "and folder2/file1.py");
  EXPECT_EQ(redactor.text("1,034 GB/s, 12 tokens/s, and/or"), "1,034 GB/s, 12 tokens/s, and/or");
  EXPECT_EQ(redactor.text("of /get_server_info"), "of /get_server_info");
}

TEST(Redactor, HiddenWordsGoWhole) {
  Redactor redactor;
  redactor.hide("node-7", "host");
  redactor.learn("/home/carolyn/traces/a.json");
  redactor.hide_model("acme/Secret-7B");
  EXPECT_EQ(redactor.text("carolyn_job on NODE-7: acme/Secret-7B, Secret-7B-awq"),
            "user_job on host: model, model-awq");
  EXPECT_EQ(redactor.text("node-70 and carolyns"), "node-70 and carolyns");
  EXPECT_EQ(redactor.text("serves zai-org/GLM-5 well"), "serves model well");
}

TEST(Redactor, WordsThatEvidenceIsMadeOfStay) {
  Redactor redactor;
  redactor.learn("/home/torch/a.json");
  redactor.learn("/home/root/a.json");
  EXPECT_EQ(redactor.text("torch.empty of root"), "torch.empty of root");
}

TEST(Redactor, TheHostInFrontOfAnExportedTraceGoes) {
  Redactor redactor;
  redactor.learn("/tmp/gpu-node-17_4242.1750000000000.pt.trace.json.gz");
  EXPECT_EQ(redactor.text("from gpu-node-17"), "from host");
}

TEST(Redactor, TracesKeepTheirKindAndAreToldApart) {
  Redactor redactor;
  EXPECT_EQ(redactor.trace_name("/x/ann.json.gz"), "trace1.json.gz");
  EXPECT_EQ(redactor.trace_name("b.sqlite"), "trace2.sqlite");
  EXPECT_EQ(redactor.trace_name("/x/ann.json.gz"), "trace1.json.gz");
  EXPECT_EQ(redactor.trace_name("-"), "-");
  EXPECT_EQ(redactor.text("b.sqlite is cut"), "trace2.sqlite is cut");
}

}  // namespace
}  // namespace culprit::cli
