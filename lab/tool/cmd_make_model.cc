#include "lab/tool/commands.h"

namespace culprit::lab {

Status make_model(const Options&, Screen&) {
  return Error{
      .code = Error::Code::kUnsupported, .what = "later", .where = {}, .hint = {}, .note_code = {}};
}

}  // namespace culprit::lab
