// Tables of the verdict, the facts behind it, and of what is to be said about the input.
#include "query/tables.h"

namespace culprit::query {
namespace {

using enum Type;

const evidence::Fact& fact(const Source& s, std::size_t row) { return s.evidence().facts[row]; }

constexpr Column kFactColumns[] = {
    {"id", kText, "F12", [](const Source& s, std::size_t row, Cell c) { c.text(fact(s, row).id); }},
    {"name", kText, "",
     [](const Source& s, std::size_t row, Cell c) { c.text(fact(s, row).name); }},
    {"value", kReal, "",
     [](const Source& s, std::size_t row, Cell c) { c.number(fact(s, row).value); }},
    {"unit", kText, "byte ns element 1 ...",
     [](const Source& s, std::size_t row, Cell c) { c.text(fact(s, row).unit); }},
    {"how", kText, "how it was had",
     [](const Source& s, std::size_t row, Cell c) { c.text(fact(s, row).how); }},
    {"query", kText, "what gives it again",
     [](const Source& s, std::size_t row, Cell c) { c.text(fact(s, row).query); }},
};

const verdict::Suspect& suspect(const Source& s, std::size_t row) {
  return s.verdict().suspects[row];
}

constexpr Column kSuspectColumns[] = {
    {"rank", kInteger, "1: the largest",
     [](const Source&, std::size_t row, Cell c) { c.integer(static_cast<std::int64_t>(row) + 1); }},
    {"id", kText, "culprit list suspects",
     [](const Source& s, std::size_t row, Cell c) { c.text(suspect(s, row).id); }},
    {"verdict", kText, "culprit contributor minor",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(verdict::standing_name(suspect(s, row).standing));
     }},
    {"confidence", kText, "certain likely possible",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(verdict::confidence_name(suspect(s, row).confidence));
     }},
    {"cause", kText, "of a stall or a straggler",
     [](const Source& s, std::size_t row, Cell c) { c.text(suspect(s, row).cause); }},
    {"claim", kText, "one sentence",
     [](const Source& s, std::size_t row, Cell c) { c.text(suspect(s, row).claim); }},
    {"ns_per_step", kInteger, "in which the cause is at work",
     [](const Source& s, std::size_t row, Cell c) { c.integer(suspect(s, row).ns_per_step); }},
    {"exposed_ns_per_step", kInteger, "what of it the step waits for",
     [](const Source& s, std::size_t row, Cell c) {
       c.integer(suspect(s, row).exposed_ns_per_step);
     }},
    {"share", kReal, "exposed, of the step",
     [](const Source& s, std::size_t row, Cell c) { c.real(suspect(s, row).share); }},
    {"tensor", kText, "that it is about",
     [](const Source& s, std::size_t row, Cell c) {
       suspect(s, row).tensor ? c.text(suspect(s, row).tensor->name) : c.null();
     }},
    {"tensor_elements", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) {
       suspect(s, row).tensor ? c.positive(suspect(s, row).tensor->elements) : c.null();
     }},
    {"tensor_match", kText, "exact within-launch-rounding inferred",
     [](const Source& s, std::size_t row, Cell c) {
       suspect(s, row).tensor ? c.text(suspect(s, row).tensor->match) : c.null();
     }},
    {"live_fraction", kReal, "of the tensor that is in use",
     [](const Source& s, std::size_t row, Cell c) { c.real(suspect(s, row).live_fraction); }},
    {"after_low_ns", kInteger, "the step after the fix, at least",
     [](const Source& s, std::size_t row, Cell c) { c.integer(suspect(s, row).gain.low); }},
    {"after_expected_ns", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(suspect(s, row).gain.expected); }},
    {"after_high_ns", kInteger, "at most",
     [](const Source& s, std::size_t row, Cell c) { c.integer(suspect(s, row).gain.high); }},
    {"bound_by_after", kText, "what bounds the step then",
     [](const Source& s, std::size_t row, Cell c) { c.text(suspect(s, row).gain.bound_by_after); }},
    {"method", kText, "retimed bound",
     [](const Source& s, std::size_t row, Cell c) { c.text(suspect(s, row).gain.method); }},
    {"file", kText, "where it is launched",
     [](const Source& s, std::size_t row, Cell c) {
       const auto& where = suspect(s, row).where;
       where.empty() ? c.null() : c.text(where.front().file);
     }},
    {"line", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) {
       const auto& where = suspect(s, row).where;
       where.empty() ? c.null() : c.integer(where.front().line);
     }},
    {"fix", kText, "",
     [](const Source& s, std::size_t row, Cell c) { c.text(suspect(s, row).fix); }},
    {"disproved_if", kText, "",
     [](const Source& s, std::size_t row, Cell c) { c.text(suspect(s, row).disproved_if); }},
};

// Lists of lists: how many entries all suspects have, and the suspect and entry of a row.
template <class List>
std::size_t entries(const Source& s, List list) {
  std::size_t sum = 0;
  for (const verdict::Suspect& each : s.verdict().suspects) sum += (each.*list).size();
  return sum;
}
template <class List>
std::pair<std::size_t, std::size_t> entry(const Source& s, std::size_t row, List list) {
  std::size_t which = 0;
  while (row >= (suspect(s, which).*list).size()) row -= (suspect(s, which++).*list).size();
  return {which, row};
}

constexpr Column kSuspectKernelColumns[] = {
    {"suspect", kText, "suspects.id",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(suspect(s, entry(s, row, &verdict::Suspect::kernels).first).id);
     }},
    {"kernel", kInteger, "kernels.kernel",
     [](const Source& s, std::size_t row, Cell c) {
       const auto [which, place] = entry(s, row, &verdict::Suspect::kernels);
       c.index(suspect(s, which).kernels[place]);
     }},
};
constexpr Column kSuspectFactColumns[] = {
    {"suspect", kText, "suspects.id",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(suspect(s, entry(s, row, &verdict::Suspect::facts).first).id);
     }},
    {"fact", kText, "facts.id",
     [](const Source& s, std::size_t row, Cell c) {
       const auto [which, place] = entry(s, row, &verdict::Suspect::facts);
       c.text(suspect(s, which).facts[place]);
     }},
};

const verdict::RuledOut& ruled(const Source& s, std::size_t row) {
  return s.verdict().ruled_out[row];
}
constexpr Column kRuledOutColumns[] = {
    {"hypothesis", kText, "",
     [](const Source& s, std::size_t row, Cell c) { c.text(ruled(s, row).hypothesis); }},
    {"claim", kText, "",
     [](const Source& s, std::size_t row, Cell c) { c.text(ruled(s, row).claim); }},
    {"because", kText, "the number that clears it",
     [](const Source& s, std::size_t row, Cell c) { c.text(ruled(s, row).because); }},
};

const store::Note& note(const Source& s, std::size_t row) { return s.answer().notes.all()[row]; }
constexpr Column kNoteColumns[] = {
    {"code", kText, "culprit list notes",
     [](const Source& s, std::size_t row, Cell c) { c.text(note(s, row).code); }},
    {"severity", kText, "info warning data-loss unusable",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(store::severity_name(note(s, row).severity));
     }},
    {"count", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(note(s, row).count); }},
    {"place", kText, "",
     [](const Source& s, std::size_t row, Cell c) { c.text(note(s, row).where); }},
    {"byte", kInteger, "first place, in the unpacked text",
     [](const Source& s, std::size_t row, Cell c) { c.integer(note(s, row).byte); }},
    {"event", kInteger, "first place, in the file's list of events",
     [](const Source& s, std::size_t row, Cell c) { c.integer(note(s, row).event); }},
    {"message", kText, "",
     [](const Source& s, std::size_t row, Cell c) { c.text(note(s, row).message); }},
};

const evidence::RankFigures& rank(const Source& s, std::size_t row) {
  return s.answer().ranks.all[row];
}
constexpr Column kRankColumns[] = {
    {"name", kText, "",
     [](const Source& s, std::size_t row, Cell c) {
       c.copy(evidence::rank_name(rank(s, row), s.answer().ranks));
     }},
    {"rank", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(rank(s, row).rank); }},
    {"device", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(rank(s, row).device); }},
    {"shown", kInteger, "1: all other tables are about this one",
     [](const Source& s, std::size_t row, Cell c) { c.truth(row == s.answer().ranks.headline); }},
    {"steps_used", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(rank(s, row).steps.used); }},
    {"mean_ns", kInteger, "of its steps",
     [](const Source& s, std::size_t row, Cell c) {
       rank(s, row).refused ? c.null() : c.integer(rank(s, row).steps.mean);
     }},
    {"comm_ns_per_step", kInteger, "communication that nothing hides",
     [](const Source& s, std::size_t row, Cell c) {
       rank(s, row).refused ? c.null() : c.integer(rank(s, row).comm_ns_per_step);
     }},
    {"wait_ns_per_step", kInteger, "of it waiting for other ranks",
     [](const Source& s, std::size_t row, Cell c) {
       rank(s, row).refused ? c.null() : c.integer(rank(s, row).wait_ns_per_step);
     }},
    {"work_ns_per_step", kInteger, "of its own",
     [](const Source& s, std::size_t row, Cell c) {
       rank(s, row).refused ? c.null() : c.integer(rank(s, row).work_ns_per_step);
     }},
};

}  // namespace

const Table kFacts{"facts", "Every figure that the answer rests on.", Needs::kVerdict, kFactColumns,
                   [](const Source& s) { return s.evidence().facts.size(); }};

const Table kSuspects{"suspects",
                      "Who is to blame, largest first.",
                      Needs::kVerdict,
                      kSuspectColumns,
                      [](const Source& s) { return s.verdict().suspects.size(); },
                      {},
                      5};

const Table kSuspectKernels{"suspect_kernels",
                            "Which kernels a suspect is about.",
                            Needs::kVerdict,
                            kSuspectKernelColumns,
                            [](const Source& s) { return entries(s, &verdict::Suspect::kernels); },
                            {},
                            20};

const Table kSuspectFacts{"suspect_facts",
                          "Which facts a suspect cites.",
                          Needs::kVerdict,
                          kSuspectFactColumns,
                          [](const Source& s) { return entries(s, &verdict::Suspect::facts); },
                          {},
                          20};

const Table kRuledOut{"ruled_out",
                      "Who is cleared, and by which number.",
                      Needs::kVerdict,
                      kRuledOutColumns,
                      [](const Source& s) { return s.verdict().ruled_out.size(); },
                      {},
                      20};

const Table kNotes{"notes",
                   "What is to be said about the quality of the input.",
                   Needs::kVerdict,
                   kNoteColumns,
                   [](const Source& s) { return s.answer().notes.all().size(); },
                   {},
                   10};

const Table kRanks{"ranks",
                   "The ranks or devices of the input side by side; no rows where there is one.",
                   Needs::kVerdict,
                   kRankColumns,
                   [](const Source& s) { return s.answer().ranks.all.size(); },
                   {},
                   10};

}  // namespace culprit::query
