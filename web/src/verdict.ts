// What was found, before anything else: who is to blame, how surely, what a fix buys, and where it stands in the code.
import type {Answer} from "./data";
import {el, name, type Child} from "./dom";
import {amount, bytes, count, duration, figure, number, percent} from "./format";
import {gainWords, place, share, stepsWords} from "./words";

function unusable(answer: Answer): HTMLElement {
  const reason = answer.quality.notes.find((note) => note.severity === "unusable");
  return el("section", {id: "verdict", class: "verdict", "aria-label": "verdict"},
    el("h1", {}, "No verdict"),
    el("p", {}, reason ? [el("code", {}, reason.code), " ", reason.message] : "This input carries no verdict."));
}

function input(answer: Answer): HTMLElement {
  const of = answer.inputs[0];
  const device = answer.device;
  return el("p", {class: "input"},
    of && [name(of.path), of.bytes !== null && [": ", figure(of.bytes, bytes, "inputs[0].bytes")],
      of.events !== null && [", ", figure(of.events, count, "inputs[0].events"), " events"]],
    el("br"), name(device.name ?? "unknown device"),
    device.peak_gbps !== null && [", peak ", figure(device.peak_gbps, number, "device.peak_gbps"), " GB/s",
      device.peak_verified === false && " (unverified)"],
    answer.model.name && ["; ", name(answer.model.name)],
    answer.layers.count !== null && ["; ", figure(answer.layers.count, amount, "layers.count"), " layers"]);
}

function keyFigure(label: string, value: Child, remark?: Child): HTMLElement {
  return el("div", {}, el("dt", {}, label), el("dd", {}, value, remark && el("small", {}, remark)));
}

function keyFigures(answer: Answer): HTMLElement {
  const steps = answer.steps;
  const gain = answer.suspects[0]?.gain;
  const busy = steps.busy_ns !== null && steps.mean_ns ? steps.busy_ns / steps.mean_ns : null;
  return el("dl", {class: "key-figures"},
    keyFigure("step, mean", figure(steps.mean_ns, duration, "steps.mean_ns"), stepsWords(answer)),
    keyFigure("p99", figure(steps.p99_ns, duration, "steps.p99_ns")),
    busy !== null && keyFigure("device busy", percent(busy), ["for ", figure(steps.busy_ns, duration, "steps.busy_ns")]),
    gain && keyFigure("step after the fix", figure(gain.step_ns_after.expected, duration, "suspects[0].gain.step_ns_after.expected"),
      gain.method === "bound" ? "at best" : "retimed"),
    answer.floor.step_ns !== null && keyFigure("hardware floor", figure(answer.floor.step_ns, duration, "floor.step_ns")));
}

export function verdictSection(answer: Answer): HTMLElement {
  if (!answer.quality.usable) return unusable(answer);
  const first = answer.suspects[0];
  const guilty = first?.verdict === "culprit";
  return el("section", {id: "verdict", class: guilty ? "verdict guilty" : "verdict", "aria-label": "verdict"},
    el("h1", {}, answer.headline ?? "no verdict"),
    first && el("p", {class: "badges"},
      el("span", {class: `badge ${first.verdict}`}, first.verdict), el("span", {class: "badge"}, first.confidence),
      el("span", {class: "badge"}, share(first.share, "suspects[0].share"), " of the step")),
    first?.gain && el("p", {}, "The fix buys ", gainWords(first.gain, "suspects[0].gain"), "."),
    first?.where[0] && el("p", {}, "At ", place(first.where[0])),
    keyFigures(answer), input(answer));
}
