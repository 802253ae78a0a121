// How long each step took, in order: which ones count in the means, and which stand out.
import uPlot from "uplot";
import {axis, chart} from "./chart";
import type {Answer, Drawing} from "./data";
import {el, section, table, type Child} from "./dom";
import {count, duration, figure} from "./format";

const bars = (fill: string): uPlot.Series => ({
  paths: uPlot.paths.bars!({size: [0.8, 60, 1]}), fill, stroke: fill, width: 0, points: {show: false},
});

export function stepsSection(answer: Answer, drawing: Drawing): Child {
  const {ns, excluded, left_out} = drawing.steps;
  if (ns.length < 2) return null;
  const index = ns.map((_, i) => i);
  const used = ns.map((n, i) => (excluded[i] ? null : n));
  const apart = ns.map((n, i) => (excluded[i] && excluded[i] !== "outlier" ? n : null));
  const outliers = ns.map((n, i) => (excluded[i] === "outlier" ? n : null));
  const longest = Math.max(...ns);
  const strip = chart(`times of ${ns.length} steps, the longest ${duration(longest)}`, 180, (colors, say) => ({
    scales: {x: {time: false, range: [-0.6, ns.length - 0.4]}, y: {range: [0, longest * 1.08]}},
    axes: [axis(colors, "step", {size: 36, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]}), axis(colors, "", {size: 68, values: (_, ticks) => ticks.map((t) => duration(t))})],
    series: [{}, bars(colors.plain), bars(colors.dim), bars(colors.accused)],
    cursor: {y: false, points: {show: false}},
    hooks: {setCursor: [(plot) => {
      const i = plot.cursor.idx;
      if (i === null || i === undefined || ns[i] === undefined) return say();
      say(`step ${i}: ${duration(ns[i])}`, excluded[i] && `, not counted: ${excluded[i]}`, drawing.step?.index === i && ", the one drawn below");
    }]},
  }), [index, used, apart, outliers]);
  const notable = answer.steps.outliers;
  return section("steps", "How long each step took",
    el("p", {class: "lead"}, "Blue steps count in the means. Grey ones do not (cut off, incomplete, not selected); red ones are outliers.",
      left_out > 0 && ` The first ${count(ns.length)} are shown; ${count(left_out)} more are in culprit steps.`),
    strip.element,
    notable.length > 0 && table("outlier steps", [{title: "outlier"}, {title: "took", number: true}, {title: "cause"}],
      notable.map((o, i) => [`step ${o.index}`, figure(o.ns, duration, `steps.outliers[${i}].ns`), o.cause])));
}
