#include "lab/engine/launch.h"

#include <cstring>

#include "lab/engine/spin.h"

namespace culprit::lab {

void Launcher::copy(profile::Name what, void* to, const void* from, std::int64_t bytes) {
  busy(faults_.host_delay);
  const profile::Launch call(profile::kCopyAsync);
  stream_.launch([what, to, from, bytes, ticket = call.ticket()](Workers&) {
    const profile::Copy span(ticket, what, {.bytes = bytes});
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  });
}

void Launcher::copy_to_pageable(void* to, const void* from, std::int64_t bytes) {
  busy(faults_.host_delay);
  const profile::Launch call(profile::kCopyAndWait);
  stream_.launch([to, from, bytes, ticket = call.ticket()](Workers&) {
    const profile::Copy span(ticket, "Memcpy DtoH (Device -> Pageable)", {.bytes = bytes});
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  });
  stream_.synchronize();
}

void Launcher::synchronize() {
  const profile::Wait wait;
  stream_.synchronize();
}

profile::Message Launcher::message_of(const Launch& launch) {
  return {.collective = launch.sending->collective,
          .dtype = "Float",
          .in_elements = launch.tokens * launch.cols,
          .out_elements = launch.tokens * launch.rows,
          .ranks = launch.sending->ranks,
          .group = launch.sending->group,
          .members = launch.sending->members};
}

void Launcher::busy(Nanos time) {
  if (time <= 0) return;
  constexpr int kPausesPerLook = 8;  // two such cores may be one to whoever computes on the other
  for (const Nanos start = now(); now() - start < time;)
    for (int i = 0; i < kPausesPerLook; ++i) relax();
}

}  // namespace culprit::lab
