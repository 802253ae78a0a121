// Where a step goes: owners whose times add up to the step, as one bar and as a table.
import type {Answer, BudgetRow} from "./data";
import {el, section, table, type Child} from "./dom";
import {amount, duration, figure, percent} from "./format";
import {inkOn, onTheme, ownerColor, theme} from "./palette";
import {share} from "./words";

// Of a bar, what is narrower than this share has no label.
const LABELLED = 0.06;

// One bar of stacked owners; `whole` is its full length.
export function stackedBar(rows: BudgetRow[], whole: number, label: string): HTMLElement {
  const pieces = rows.map((row) => {
    const part = row.ns_per_step / whole;
    const piece = el("span", {class: "piece", title: `${row.owner}: ${duration(row.ns_per_step)}, ${percent(row.share)}`},
      part >= LABELLED && row.owner);
    piece.style.width = `${100 * part}%`;
    return piece;
  });
  const paint = (): void => pieces.forEach((piece, i) => {
    const ground = ownerColor(rows[i]!.owner, theme());
    piece.style.backgroundColor = ground;
    piece.style.color = inkOn(ground);
  });
  paint();
  onTheme(paint);
  return el("div", {class: "stacked", role: "img", "aria-label": label}, pieces);
}

export function swatch(owner: string): HTMLElement {
  const box = el("span", {class: "swatch", "aria-hidden": "true"});
  const paint = (): void => { box.style.backgroundColor = ownerColor(owner, theme()); };
  paint();
  onTheme(paint);
  return box;
}

export function budgetSection(answer: Answer): Child {
  const mean = answer.steps.mean_ns;
  if (!mean || answer.budget.length === 0) return null;
  const largest = answer.budget.slice(0, 3).map((row) => `${row.owner} ${percent(row.share)}`).join(", ");
  const rows = answer.budget.map((row, i): Child[] => [
    [swatch(row.owner), row.owner],
    figure(row.ns_per_step, duration, `budget[${i}].ns_per_step`),
    share(row.share, `budget[${i}].share`),
    row.calls_per_step > 0 ? figure(row.calls_per_step, amount, `budget[${i}].calls_per_step`) : "–",
  ]);
  rows.push(["total = step", figure(mean, duration, "steps.mean_ns"), "100.0 %", ""]);
  const classes = rows.map((_, i) => (i === rows.length - 1 ? "total" : undefined));
  return section("budget", "Where a step goes",
    el("p", {class: "lead"}, "Every nanosecond of the mean step has one owner; the rows add up to it."),
    stackedBar(answer.budget, mean, `owners of the step: ${largest}`),
    el("div", {class: "narrow"}, table("owners of the step",
      [{title: "owner"}, {title: "per step", number: true}, {title: "share", number: true}, {title: "calls", number: true}], rows, classes)));
}
