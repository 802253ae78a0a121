// What a fix buys: the step now, the step after each fix, and the floor of the hardware, on one scale.
import type {Answer, Gain} from "./data";
import {el, section, type Child} from "./dom";
import {duration, figure, number} from "./format";

interface Bar { label: Child; kind: string; ns: number; path: string; low?: number; high?: number; remark?: Child }

function gainBar(label: Child, gain: Gain, path: string): Bar {
  const {low, expected, high} = gain.step_ns_after;
  return {label, kind: gain.method === "bound" ? "bound" : "after", ns: expected, path: `${path}.step_ns_after.expected`, low, high,
    remark: [gain.method === "bound" ? "at best" : null,
      gain.tokens_per_s_after !== null && [figure(gain.tokens_per_s_after, number, `${path}.tokens_per_s_after`), " tokens/s"],
      gain.bound_by_after && `bound by ${gain.bound_by_after}`].filter(Boolean).flatMap((r, i) => (i > 0 ? [", ", r] : [r]))};
}

function barsOf(answer: Answer): Bar[] {
  const bars: Bar[] = [{label: "now", kind: "now", ns: answer.steps.mean_ns ?? 0, path: "steps.mean_ns"}];
  answer.suspects.forEach((suspect, i) => {
    if (suspect.gain) bars.push(gainBar(`without ${suspect.id}`, suspect.gain, `suspects[${i}].gain`));
    suspect.fix.options.forEach((option, o) => {
      if (option.gain) bars.push(gainBar([`${suspect.id}: ${option.name}`, el("small", {}, option.summary)], option.gain, `suspects[${i}].fix.options[${o}].gain`));
    });
  });
  if (answer.floor.step_ns !== null) bars.push({label: "hardware floor", kind: "floor", ns: answer.floor.step_ns, path: "floor.step_ns"});
  return bars;
}

export function whatIfSection(answer: Answer): Child {
  const bars = barsOf(answer);
  if (bars.length < 2) return null;
  const whole = Math.max(...bars.map((bar) => Math.max(bar.ns, bar.kind === "bound" ? 0 : bar.high ?? 0)));
  const rows = bars.map((bar) => {
    const filled = el("span", {class: `bar ${bar.kind}`});
    filled.style.width = `${100 * bar.ns / whole}%`;
    const track = el("span", {class: "track", "aria-hidden": "true"}, filled);
    if (bar.low !== undefined && bar.high !== undefined && bar.high > bar.low) {
      const range = el("span", {class: "range", title: `${duration(bar.low)} to ${duration(bar.high)}`});
      range.style.left = `${100 * bar.low / whole}%`;
      range.style.width = `${100 * (Math.min(bar.high, whole) - bar.low) / whole}%`;
      track.append(range);
    }
    return el("li", {}, el("span", {class: "label"}, bar.label), track,
      el("span", {class: "value"}, figure(bar.ns, duration, bar.path), bar.remark && el("small", {}, bar.remark)));
  });
  return section("what-if", "What a fix buys",
    el("p", {class: "lead"}, "The step run again with the change in it. A thin line spans what the host's time, which a profiler inflates, leaves open; ",
      "hatched bars are bounds."),
    el("ul", {class: "bars"}, rows));
}
