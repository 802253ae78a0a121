// The floor in JSON: a member of every answer, and the document of `culprit floor`, which follows
// docs/schema/floor.schema.json.
#include "report/json_floor.h"
#include "report/json_parts.h"

#include <algorithm>
#include <cmath>

#include "report/report.h"

namespace culprit::report {
namespace {

constexpr auto kBlock = JsonLayout::kBlock;
constexpr auto kLine = JsonLayout::kLine;

// A config may be of any size; what no integer holds is cut off.
std::int64_t whole(double x) {
  constexpr double kMost = 9e18;
  return std::llround(std::clamp(x, 0.0, kMost));
}

void write_parts(JsonWriter& w, const evidence::StepFloor* floor) {
  w.begin_array("by", kBlock);
  for (std::size_t i = 0; floor != nullptr && i < floor->floor.parts.size(); ++i) {
    const known::FloorPart& part = floor->floor.parts[i];
    w.begin_object({}, kLine);
    w.text("component", known::component_name(part.component));
    w.integer("ns", part.ns);
    w.integer("bytes", whole(part.bytes));
    w.integer("flops", whole(part.flops));
    w.text("bound", known::bound_name(part.bound));
    w.text_or_null("how", part.how);
    w.end();
  }
  w.end();
}

void write_distance(JsonWriter& w, const evidence::StepFloor* floor) {
  w.begin_array("distance", kBlock);
  for (std::size_t i = 0; floor != nullptr && i < floor->distance.size(); ++i) {
    const evidence::Distance& row = floor->distance[i];
    w.begin_object({}, kLine);
    w.text("name", row.name);
    w.begin_array("components", kLine);
    for (const known::Component c : row.components) w.text({}, known::component_name(c));
    w.end();
    w.begin_array("owners", kLine);
    for (const known::Owner owner : row.owners) w.text({}, known::owner_name(owner));
    w.end();
    w.integer("floor_ns", row.floor);
    w.integer("measured_ns", row.measured);
    w.text_or_null("not_told_apart", row.together);
    w.end();
  }
  w.end();
}

void write_assumed(JsonWriter& w, const evidence::StepFloor* floor) {
  if (floor == nullptr) return w.null("assumes");
  const known::Deployment& deployment = floor->given.deployment;
  w.begin_object("assumes", kLine);
  w.text("gpu", floor->given.gpu.name);
  w.number("peak_gbps", floor->given.gpu.peak_gbps);
  w.integer("tp", deployment.tp);
  w.integer("ep", deployment.ep);
  w.integer("attention_dp", deployment.attention_dp);
  w.integer("batch", deployment.batch.value_or(1));
  w.integer("context", floor->given.context);
  w.text("kv_dtype", known::dtype_name(floor->floor.kv_dtype));
  w.end();
}

void write_gpu(JsonWriter& w, const known::Gpu& gpu) {
  w.begin_object("gpu", kBlock);
  w.text("name", gpu.name);
  w.text_or_null("arch", gpu.arch);
  w.number("peak_gbps", known_or_null(gpu.peak_gbps));
  w.number("half_tflops", known_or_null(gpu.half_tflops));
  w.number("fp8_tflops", known_or_null(gpu.fp8_tflops));
  w.number("fp4_tflops", known_or_null(gpu.fp4_tflops));
  w.number("link_gbps", known_or_null(gpu.link_gbps));
  w.number("pcie_gbps", known_or_null(gpu.pcie_gbps));
  w.begin_array("unverified", kLine);
  for (const std::string& column : gpu.unverified) w.text({}, column);
  w.end();
  w.end();
}

void write_memory(JsonWriter& w, const known::Floor& floor) {
  w.begin_object("weights", kLine);
  w.integer("read_bytes_per_gpu", whole(floor.weight_bytes));
  w.integer("read_bytes_once", whole(floor.weight_bytes_once));
  w.integer("held_bytes_per_gpu", whole(floor.held_bytes));
  w.end();
  w.integer("pool_bytes_per_gpu",
            floor.pool_bytes ? std::optional(whole(*floor.pool_bytes)) : std::nullopt);
}

}  // namespace

void write_floor(JsonWriter& w, const evidence::StepFloor* floor) {
  w.begin_object("floor", kBlock);
  w.integer("step_ns", floor != nullptr ? std::optional(floor->floor.step) : std::nullopt);
  write_parts(w, floor);
  write_distance(w, floor);
  write_assumed(w, floor);
  w.begin_array("notes", kBlock);
  for (std::size_t i = 0; floor != nullptr && i < floor->floor.notes.size(); ++i)
    w.text({}, floor->floor.notes[i]);
  w.end();
  w.end();
}

std::string render_floor_json(const evidence::StepFloor& answer, std::string_view trace) {
  JsonWriter w;
  begin_document(w, "floor");
  w.text_or_null("trace", trace);
  const known::Model& model = answer.given.model;
  w.begin_object("model", kLine);
  w.text("name", model.name);
  w.integer("layers", model.layers);
  w.text_or_null("quantized", model.quant_algo);
  w.begin_array("unverified", kLine);
  for (const std::string& column : model.unverified) w.text({}, column);
  w.end();
  w.end();
  write_gpu(w, answer.given.gpu);
  w.integer("measured_step_ns",
            answer.measured > 0 ? std::optional(answer.measured) : std::nullopt);
  write_floor(w, &answer);
  write_memory(w, answer.floor);
  w.end();
  return w.take();
}

}  // namespace culprit::report
