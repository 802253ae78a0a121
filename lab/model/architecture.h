// The architectures that the lab runs, by the names that their configs and GGUF files use, and what of
// each the files do not state: the order of rotary pairs and whether heads are normalised.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lab/model/config.h"

namespace culprit::lab {

struct Architecture {
  std::string_view name;        // of config.json's `architectures`
  std::string_view model_type;  // of config.json
  std::string_view gguf;        // general.architecture; empty: llama.cpp has none that fits
  Family family = Family::kGqa;
  RopeStyle rope = RopeStyle::kHalfSplit;  // of safetensors' rows
  RopeStyle indexer_rope = RopeStyle::kHalfSplit;
  RopeStyle gguf_rope = RopeStyle::kHalfSplit;  // of a GGUF's rows
  bool qk_norm = false;
  bool indexer = false;
  bool experts = false;
};
std::span<const Architecture> architectures();
// None of that name: nullptr.
const Architecture* architecture_named(std::string_view name);
const Architecture* architecture_of_gguf(std::string_view name);

}  // namespace culprit::lab
