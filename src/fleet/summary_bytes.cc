// A summary as bytes: what its parts hold, in which order. A change here needs another kVersion (shelf.cc).
#include <algorithm>
#include <limits>

#include "fleet/archive.h"
#include "fleet/summary.h"

namespace culprit::fleet {

// Found by the archive through its own namespace, so they cannot hide in one without a name.
template <class Archive>
void fields(Archive& a, Error& error) {
  items(a, error.code, error.what, error.where, error.hint, error.note_code);
}

template <class Archive>
void fields(Archive& a, store::Note& note) {
  items(a, note.code, note.severity, note.count, note.byte, note.event, note.where, note.message);
}

template <class Archive>
void fields(Archive& a, store::Notes& notes) {
  std::vector<store::Note> all = notes.all();
  item(a, all);
  notes = {};
  for (store::Note& note : all) notes.add(std::move(note));
}

template <class Archive>
void fields(Archive& a, evidence::StepStats& steps) {
  items(a, steps.found, steps.used, steps.mean, steps.median, steps.p99, steps.device_span,
        steps.device_busy, steps.busy_ns, steps.activity_ns, steps.host_ns, steps.host_wait_ns,
        steps.tokens, steps.tokens_how);
}

template <class Archive>
void fields(Archive& a, evidence::BudgetRow& row) {
  items(a, row.owner, row.ns_per_step, row.share, row.calls_per_step);
}

template <class Archive>
void fields(Archive& a, evidence::RankKernel& kernel) {
  items(a, kernel.name, kernel.owner, kernel.calls, kernel.blocks, kernel.ns);
}

template <class Archive>
void fields(Archive& a, evidence::CallKind& kind) {
  items(a, kind.group, kind.what, kind.group_size);
}

template <class Archive>
void fields(Archive& a, evidence::RankCall& call) {
  items(a, call.begin, call.end, call.sequence, call.kind, call.step, call.since.kernels,
        call.since.blocks);
  for (Nanos& ns : call.since.ns) item(a, ns);
}

template <class Archive>
void fields(Archive& a, store::Span& span) {
  items(a, span.begin, span.end);
}

template <class Archive>
void fields(Archive& a, evidence::RankFigures& rank) {
  items(a, rank.rank, rank.label, rank.process, rank.device, rank.index, rank.kernels,
        rank.kernel_ns, rank.busy_ns, rank.kind, rank.how, rank.steps, rank.comm_ns_per_step,
        rank.wait_ns_per_step, rank.work_ns_per_step, rank.budget, rank.refused);
  evidence::RankRecord& record = rank.record;
  items(a, record.world, record.kernels, record.steps, record.begin, record.end, record.host_ns,
        record.host_work, record.stall);
}

template <class Archive>
void fields(Archive& a, StepRow& step) {
  items(a, step.begin, step.length, step.kind, step.batch, step.used);
}

template <class Archive>
void fields(Archive& a, Accusation& suspect) {
  items(a, suspect.id, suspect.standing, suspect.confidence, suspect.claim, suspect.ns_per_step,
        suspect.exposed_ns_per_step);
}

template <class Archive>
void head_fields(Archive& a, Summary& summary) {
  items(a, summary.kind, summary.path, summary.format, summary.bytes, summary.events, summary.fault,
        summary.notes, summary.run_notes, summary.figures, summary.calls_in_all, summary.calls_kept,
        summary.steps_in_all, summary.suspects);
}

template <class Archive>
void fields(Archive& a, StepRange& steps) {
  items(a, steps.first, steps.end);
}

template <class Archive>
void tail_fields(Archive& a, Summary& summary, std::vector<StepRange>& blocks) {
  items(a, summary.steps, summary.figures.record.kinds, blocks);
}

struct Block {
  std::int64_t step = 0;  // that the first collective belongs to
  std::vector<evidence::RankCall> calls;
  store::SpanSet exposed;
};

template <class Archive>
void fields(Archive& a, Block& block) {
  items(a, block.step, block.calls, block.exposed);
}

namespace {

constexpr std::size_t kCallsOfBlock = 2'048;

// The next block from `at` on, with what of `exposed` begins before the block behind it.
Block next_block(const std::vector<evidence::RankCall>& calls, std::size_t& at, std::int64_t& step,
                 const store::SpanSet& exposed, std::size_t& exposed_at, StepRange& steps) {
  Block block;
  const std::size_t end = std::min(calls.size(), at + kCallsOfBlock);
  block.step = steps.first = std::max<std::int64_t>(step, calls[at].step);
  for (; at < end; ++at) {
    step = std::max<std::int64_t>(step, calls[at].step);
    block.calls.push_back(calls[at]);
  }
  steps.end = step + 1;
  for (; exposed_at < exposed.size(); ++exposed_at) {
    if (end < calls.size() && exposed[exposed_at].begin >= calls[end].begin) break;
    block.exposed.push_back(exposed[exposed_at]);
  }
  return block;
}

}  // namespace

Encoded encode(Summary summary) {
  Encoded encoded;
  Writer head, tail;
  const evidence::RankRecord& record = summary.figures.record;
  std::vector<StepRange> blocks;
  std::size_t at = 0, exposed_at = 0;
  for (std::int64_t step = 0; at < record.calls.size();) {
    Writer writer;
    Block block =
        next_block(record.calls, at, step, record.exposed_comm, exposed_at, blocks.emplace_back());
    fields(writer, block);
    encoded.blocks.push_back(writer.take());
  }
  head_fields(head, summary);
  tail_fields(tail, summary, blocks);
  encoded.head = head.take();
  encoded.tail = tail.take();
  return encoded;
}

bool decode_head(std::string_view head, Summary& summary) {
  Reader reader(head);
  head_fields(reader, summary);
  return reader.at_end();
}

bool decode_tail(std::string_view tail, Summary& summary, std::vector<StepRange>& blocks) {
  Reader reader(tail);
  tail_fields(reader, summary, blocks);
  return reader.at_end();
}

bool decode_block(std::string_view bytes, StepRange steps, Summary& summary) {
  Reader reader(bytes);
  Block block;
  fields(reader, block);
  evidence::RankRecord& record = summary.figures.record;
  const bool known =
      std::all_of(block.calls.begin(), block.calls.end(),
                  [&](const evidence::RankCall& call) { return call.kind < record.kinds.size(); });
  if (!reader.at_end() || !known) return false;
  Nanos from = std::numeric_limits<Nanos>::min(), until = std::numeric_limits<Nanos>::max();
  std::int64_t step = block.step;
  for (const evidence::RankCall& call : block.calls) {
    const bool before = step < steps.first;
    step = std::max<std::int64_t>(step, call.step);
    if (step < steps.first) continue;
    if (step >= steps.end) {
      until = call.begin;
      break;
    }
    if (before) from = call.begin;
    record.calls.push_back(call);
  }
  if (step < steps.first || block.step >= steps.end) return true;
  for (const store::Span& span : block.exposed)
    if (span.begin >= from && span.begin < until) record.exposed_comm.push_back(span);
  return true;
}

}  // namespace culprit::fleet
