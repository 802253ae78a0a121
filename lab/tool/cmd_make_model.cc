// `culprit lab make-model`: a random checkpoint that behaves like a real one.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "lab/files/make_model.h"
#include "lab/tool/commands.h"
#include "lab/tool/model.h"

namespace culprit::lab {

Status make_model(const Options& options, Screen& screen) {
  TRY(const ModelConfig config, shaped_config(options));
  screen.progress(fmt::format("writing {}", options.output));
  const MakeModel order{.model = {config, options.scheme, options.seed},
                        .container = options.container,
                        .path = options.output,
                        .overwrite = options.overwrite};
  TRY(const std::int64_t bytes, make_model(order));
  const std::string text =
      fmt::format("{}: {}, {}, {}, {}\n", options.output, options.preset,
                  scheme_name(options.scheme), layers_of(config), text::bytes(bytes));
  const nlohmann::ordered_json json = {{"kind", "lab-make-model"},
                                       {"path", options.output},
                                       {"layers", config.layers},
                                       {"scheme", scheme_name(options.scheme)},
                                       {"bytes", bytes}};
  return screen.answer(text, json.dump(1) + "\n");
}

}  // namespace culprit::lab
