// How far the input can be trusted: its notes, what of the device's time is attributed, and what this page leaves out.
import type {Answer, Drawing, Maybe} from "./data";
import {el, name, section, table, type Child} from "./dom";
import {count, figure, percent} from "./format";

const GRAVITY = ["unusable", "data-loss", "warning", "info"];

export function qualitySection(answer: Answer, drawing: Maybe<Drawing>): Child {
  const notes = answer.quality.notes.map((note, i) => ({note, i}))
    .sort((a, b) => GRAVITY.indexOf(a.note.severity) - GRAVITY.indexOf(b.note.severity));
  const attributed = answer.quality.gpu_time_attributed;
  const kinds = ["step", "op", "source", "layer"] as const;
  const leftOut = Object.entries(drawing?.left_out ?? {}).filter(([, n]) => n > 0);
  const within = answer.retiming.reproduces_step_within;
  return section("quality", "How good the data is",
    answer.quality.usable && el("p", {}, "Of the device's time ", kinds.map((kind, i) => [i > 0 && ", ",
      figure(attributed[kind], percent, `quality.gpu_time_attributed.${kind}`), ` has its ${kind}`]).flat(), ".",
      within !== null && [" Without a change the retimed step comes out ", figure(within, percent, "retiming.reproduces_step_within"), " off."],
      answer.retiming.off && [" Retiming is off: ", name(answer.retiming.off), "."]),
    notes.length > 0 ? table("notes on the input", [{title: "note"}, {title: "weight"}, {title: "times", number: true}, {title: "what"}],
      notes.map(({note, i}) => [el("code", {}, note.code), note.severity, figure(note.count, count, `quality.notes[${i}].count`),
        [name(note.message), note.where && [" (", name(note.where), ")"]]]))
      : el("p", {}, "Nothing is wrong with the input."),
    leftOut.length > 0 && el("p", {}, "This page leaves out, the shortest first: ", leftOut.map(([what, n]) => `${count(n)} ${what}`).join(", "), "."));
}
