// What flags and files add to a trace: the model, the deployment, the GPU.
#include <filesystem>

#include "cli/run_command.h"
#include "known/gpus.h"
#include "known/models.h"

namespace culprit::cli {

Result<known::Deployment> gather_deployment(const Settings& settings) {
  known::Deployment deployment;
  if (!settings.server_info.empty()) {
    TRY(deployment, known::load_server_info(settings.server_info));
  }
  deployment.tp = settings.tp.value_or(deployment.tp);
  deployment.ep = settings.ep.value_or(deployment.ep);
  deployment.attention_dp = settings.attention_dp.value_or(deployment.attention_dp);
  if (settings.kv_dtype) deployment.kv_dtype = settings.kv_dtype;
  if (settings.pool_tokens) deployment.pool_tokens = settings.pool_tokens;
  if (settings.active_tokens) deployment.active_tokens = settings.active_tokens;
  return deployment;
}

void redact(Redactor* redactor, const std::string& given, known::Model& model) {
  if (redactor == nullptr) return;
  redactor->learn(given);
  // Of a config the folder is named after the model.
  const std::filesystem::path path(given);
  redactor->hide_model((path.extension() == ".json" ? path.parent_path() : path).string());
  redactor->hide_model(model.name);
  model.name = "model";
  if (!model.table.empty()) model.table = "your table";
}

Result<evidence::Knowledge> gather_knowledge(const Settings& settings, Redactor* redactor) {
  evidence::Knowledge known;
  if (!settings.model.empty()) {
    TRY(known.model, known::load_model(settings.model));
    redact(redactor, settings.model, *known.model);
    std::error_code failed;
    known.model_source = std::filesystem::exists(settings.model, failed) ? "config" : "table";
  }
  TRY(known.deployment, gather_deployment(settings));
  if (!settings.gpu.empty()) {
    TRY([[maybe_unused]] const known::Gpu gpu, known::find_gpu(settings.gpu));
  }
  known.kv_dtype_from_flag = settings.kv_dtype.has_value();
  known.tpot_ms = settings.tpot_ms;
  return known;
}

run::Options building(const Settings& settings, const evidence::Knowledge& known) {
  run::Options options;
  options.steps = settings.steps;
  options.gpu = settings.gpu;
  options.threads = settings.threads;
  if (known.model && known.model->layers > 0) options.config_layers = known.model->layers;
  return options;
}

}  // namespace culprit::cli
