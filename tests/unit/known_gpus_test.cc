#include "known/gpus.h"

#include <gtest/gtest.h>

#include <set>

#include "known/csv.h"

namespace culprit::known {
namespace {

// Names, memory and SMs as recorded by Kineto and Nsight on these devices.
struct Seen {
  const char* name;
  std::int64_t memory;
  int sms, major, minor;
  const char* row;
  double gbps;
};
const Seen kSeen[] = {
    {"NVIDIA H100 80GB HBM3", 85'018'279'936, 132, 9, 0, "H100 SXM", 3350},
    {"NVIDIA B200", 191'503'138'816, 148, 10, 0, "B200 SXM", 7700},
    {"NVIDIA A100-SXM4-80GB", 85'174'583'296, 108, 8, 0, "A100 SXM 80GB", 2039},
    {"NVIDIA A100-PG509-200", 42'505'273'344, 108, 8, 0, "A100 SXM 40GB", 1555},
    {"NVIDIA A100-PCIE-40GB", 42'346'610'688, 108, 8, 0, "A100 PCIe 40GB", 1555},
    {"Tesla V100-SXM2-32GB", 34'079'899'648, 80, 7, 0, "V100 SXM2", 900},
    {"Tesla V100-SXM2-16GB", 16'945'512'448, 80, 7, 0, "V100 SXM2 16GB", 900},
    {"Tesla V100-DGXS-32GB", 34'084'028'416, 80, 7, 0, "V100 SXM2", 900},
    {"AMD Instinct MI300X", 206'141'652'992, 304, 9, 4, "MI300X", 5300},
    {"AMD Instinct MI300X VF", 205'571'227'648, 304, 9, 4, "MI300X", 5300},
    {"AMD Instinct MI210", 68'702'699'520, 104, 9, 0, "MI210", 1638},
    {"NVIDIA RTX PRO 6000 Blackwell Server Edition", 102'641'958'912, 188, 12, 0,
     "RTX PRO 6000 Blackwell Server", 1792},
    {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 102'641'958'912, 188, 12, 0,
     "RTX PRO 6000 Blackwell Workstation", 1792},
    {"NVIDIA H200", 150'754'820'096, 132, 9, 0, "H200 SXM", 4800},
    {"NVIDIA GeForce RTX 4090", 25'393'692'672, 128, 8, 9, "RTX 4090", 1008},
    {"NVIDIA A100 80GB PCIe", 85'093'515'264, 108, 8, 0, "A100 PCIe 80GB", 1935},
    {"NVIDIA GB10", 128'523'812'864, 48, 12, 1, "DGX Spark GB10", 273},
};

TEST(Gpus, RecordedDevicesFindTheirRowAndAgreeWithIt) {
  for (const Seen& seen : kSeen) {
    const auto match = match_device({seen.name, seen.memory, seen.sms, seen.major, seen.minor});
    ASSERT_TRUE(match.has_value()) << seen.name;
    EXPECT_EQ(match->gpu.name, seen.row);
    EXPECT_DOUBLE_EQ(match->gpu.peak_gbps, seen.gbps);
    EXPECT_EQ(match->warning, "") << seen.name;
    EXPECT_FALSE(match->by_properties);
  }
}

TEST(Gpus, EmptyNamesOfOtherBoardsAreFoundToo) {
  const Seen nameless[] = {{"", 274'877'906'944, 304, 9, 4, "MI325X", 6000},
                           {"", 309'220'868'096, 256, 9, 5, "MI355X", 8000},
                           {"", 68'702'699'520, 104, 9, 0, "MI210", 1638}};
  for (const Seen& seen : nameless) {
    const auto match = match_device({seen.name, seen.memory, seen.sms, seen.major, seen.minor});
    ASSERT_TRUE(match.has_value()) << seen.row;
    EXPECT_EQ(match->gpu.name, seen.row);
    EXPECT_DOUBLE_EQ(match->gpu.peak_gbps, seen.gbps);
  }
}

// One of the two dies of an MI250X: half of its compute units, memory and bandwidth.
TEST(Gpus, ADieOfANamelessBoardIsFoundWithItsHalf) {
  const auto die = match_device({"", 68'702'699'520, 110, 9, 0});
  ASSERT_TRUE(die.has_value());
  EXPECT_EQ(die->gpu.name, "MI250X");
  EXPECT_EQ(die->gpu.sms, 110);
  EXPECT_NEAR(die->gpu.peak_gbps, 1600, 10);
  EXPECT_TRUE(die->by_properties);
  EXPECT_FALSE(die->warning.empty());
}

TEST(Gpus, AnEmptyNameIsFoundByItsProperties) {
  const auto match = match_device({"", 206'141'652'992, 304, 9, 4});
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->gpu.name, "MI300X");
  EXPECT_TRUE(match->by_properties);
  const auto bigger = match_device({"", 274'877'906'944, 304, 9, 4});
  ASSERT_TRUE(bigger.has_value());
  EXPECT_EQ(bigger->gpu.name, "MI325X");
  EXPECT_FALSE(match_device({"", 206'141'652'992, 0, 9, 4}).has_value());
  EXPECT_FALSE(match_device({}).has_value());
}

TEST(Gpus, AnUnknownDeviceGivesNoRow) {
  for (const char* name :
       {"ARTEMIS", "NVIDIA H200 NVL", "NVIDIA GeForce RTX 4090 D",
        "GeForce GTX 1060 with Max-Q Design", "NVIDIA GeForce RTX 4090 Laptop GPU",
        "AMD Radeon Graphics", "Tesla V100-PCIE-16GB", "NVIDIA A10G"}) {
    EXPECT_FALSE(match_device({name, 24'000'000'000, 80, 8, 9}).has_value()) << name;
  }
}

// "NVIDIA H100" alone is one of three rows, or none: this one has 96 GB, which no row has.
TEST(Gpus, AnAmbiguousNameNeedsItsProperties) {
  EXPECT_FALSE(match_device({"NVIDIA H100", 102'085'492'736, 132, 9, 0}).has_value());
  EXPECT_FALSE(match_device({"NVIDIA H100", 0, 0, 0, 0}).has_value());
  const auto match = match_device({"NVIDIA H100", 85'018'279'936, 132, 9, 0});
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->gpu.name, "H100 SXM");
}

TEST(Gpus, ADifferentVariantIsSaidAndASliceIsScaled) {
  const auto variant = match_device({"NVIDIA H20", 150'754'820'096, 78, 9, 0});
  ASSERT_TRUE(variant.has_value());
  EXPECT_NE(variant->warning, "");
  EXPECT_DOUBLE_EQ(variant->gpu.peak_gbps, 4000);
  // One die of two.
  const auto die = match_device({"AMD Instinct MI250X", 68'702'699'520, 110, 9, 0});
  ASSERT_TRUE(die.has_value());
  EXPECT_NE(die->warning, "");
  EXPECT_NEAR(die->gpu.peak_gbps, 1600, 10);
  EXPECT_NEAR(die->gpu.half_tflops, 191.5, 0.1);
  EXPECT_EQ(die->gpu.sms, 110);
  EXPECT_FALSE(die->gpu.peak_verified);
  const auto mig = match_device({"NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4'991'221'760, 14, 8, 0});
  ASSERT_TRUE(mig.has_value());
  EXPECT_NE(mig->warning, "");
  EXPECT_LT(mig->gpu.peak_gbps, 250);
}

TEST(Gpus, FlagsAcceptRowsAliasesAndUniqueBeginnings) {
  EXPECT_EQ(find_gpu("h200")->name, "H200 SXM");
  EXPECT_EQ(find_gpu("RTX PRO 6000")->name, "RTX PRO 6000 Blackwell Server");
  EXPECT_EQ(find_gpu("mi300x")->name, "MI300X");
  EXPECT_EQ(find_gpu("NVIDIA A100-SXM4-80GB")->name, "A100 SXM 80GB");
  EXPECT_EQ(find_gpu("B200 SXM")->name, "B200 SXM");
}

TEST(Gpus, UnknownOrAmbiguousFlagsNameTheCandidates) {
  const auto ambiguous = find_gpu("H100");
  ASSERT_FALSE(ambiguous.ok());
  EXPECT_EQ(ambiguous.error().code, Error::Code::kUsage);
  EXPECT_NE(ambiguous.error().hint.find("H100 SXM"), std::string::npos);
  EXPECT_NE(ambiguous.error().hint.find("H100 PCIe"), std::string::npos);
  const auto slip = find_gpu("MI30X");
  ASSERT_FALSE(slip.ok());
  EXPECT_NE(slip.error().hint.find("MI300X"), std::string::npos);
  for (const char* nothing : {"", "frobnicator", "   "}) {
    const auto unknown = find_gpu(nothing);
    ASSERT_FALSE(unknown.ok());
    EXPECT_NE(unknown.error().hint, "");
  }
}

TEST(Gpus, TheTableHoldsTogether) {
  ASSERT_GE(gpus().size(), 36u);
  std::set<std::string> names;
  for (const Gpu& gpu : gpus()) {
    EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
    EXPECT_FALSE(gpu.arch.empty()) << gpu.name;
    EXPECT_GT(gpu.peak_gbps, 100) << gpu.name;
    EXPECT_LT(gpu.peak_gbps, 10'000) << gpu.name;
    EXPECT_GT(gpu.memory_gb, 0) << gpu.name;
    // Dense figures: FP8 is twice half precision (or equal, where a chip has no faster path).
    if (gpu.fp8_tflops > 0 && gpu.half_tflops > 0) {
      EXPECT_GE(gpu.fp8_tflops, 0.99 * gpu.half_tflops) << gpu.name;
      EXPECT_LE(gpu.fp8_tflops, 2.05 * gpu.half_tflops) << gpu.name;
    }
    const auto found = find_gpu(gpu.name);
    ASSERT_TRUE(found.ok()) << gpu.name;
    EXPECT_EQ(found->name, gpu.name);
  }
  EXPECT_FALSE(find_gpu("RTX PRO 6000 Blackwell Server")->peak_verified);
  EXPECT_TRUE(find_gpu("H100 SXM")->peak_verified);
}

TEST(Csv, QuotesListsAndGrowingColumns) {
  const auto csv = Csv::parse("name,note,n\r\nx,\"a, \"\"b\"\"\nc\",7\n\ny,,2.5\n", "t.csv");
  ASSERT_TRUE(csv.ok());
  ASSERT_EQ(csv->rows(), 2u);
  EXPECT_EQ(csv->place(0), "t.csv:2");
  EXPECT_EQ(csv->place(1), "t.csv:5");  // behind a cell of two lines and an empty one
  EXPECT_EQ(csv->cell(0, "note"), "a, \"b\"\nc");
  EXPECT_EQ(csv->integer(0, "n"), 7);
  EXPECT_EQ(csv->number(1, "n"), 2.5);
  EXPECT_FALSE(csv->integer(1, "n").has_value());
  EXPECT_FALSE(csv->integer(1, "note").has_value());
  EXPECT_EQ(csv->cell(1, "unheard-of"), "");
  EXPECT_EQ(csv->cell(9, "name"), "");
  EXPECT_EQ(cell_list(" a ; b;;c"), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Gpus, OwnRowsComeOnTop) {
  ASSERT_TRUE(add_gpu_table("\xEF\xBB\xBFname,memory_bandwidth_gb_per_s,unverified\n"
                            "Prototype,1234,memory_bandwidth_gb_per_s\nt4,321,\n",
                            "own.csv")
                  .ok());
  EXPECT_EQ(find_gpu("prototype")->peak_gbps, 1234);
  EXPECT_FALSE(find_gpu("prototype")->peak_verified);
  EXPECT_EQ(find_gpu("T4")->table, "own.csv");
  EXPECT_EQ(find_gpu("T4")->peak_gbps, 321);
  EXPECT_EQ(find_gpu("L4")->table, "");
  const std::size_t before = gpus().size();
  const Status wrong = add_gpu_table("name,half_dense_tflops\nA,1\nB,-2\n", "own.csv");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().where, "own.csv:3");
  EXPECT_EQ(gpus().size(), before);  // all of a table or nothing
}

TEST(Csv, BrokenTablesSayWhere) {
  const auto open_quote = Csv::parse("a,b\n1,\"2\n", "t.csv");
  ASSERT_FALSE(open_quote.ok());
  EXPECT_EQ(open_quote.error().where, "t.csv:2");
  const auto wide = Csv::parse("a,b\n1,2,3\n", "t.csv");
  ASSERT_FALSE(wide.ok());
  EXPECT_FALSE(Csv::parse("", "t.csv").ok());
}

}  // namespace
}  // namespace culprit::known
