// Who is accused: the claim, the tensor, the kernel's figures, the fix, what would disprove it, and every fact behind it.
import type {Answer, Drawing, Fact, Kernel, Maybe, Suspect} from "./data";
import {el, line, name, section, table, type Child} from "./dom";
import {amount, bytes, count, duration, figure, number, percent, UNITS} from "./format";
import {gainWords, place, share} from "./words";

const blocks = (dim: number[]): string => (dim[1] === 1 && dim[2] === 1 ? count(dim[0]!) : dim.map(count).join(" × "));

// "78 calls a step, 828 µs each; grid 557,496 of 128 threads; 856 MB a call at 1,034 GB/s, 57.7 % of peak"
function kernelFigures(kernel: Kernel, path: string): Child {
  return [
    figure(kernel.calls_per_step, amount, `${path}.calls_per_step`), " calls a step, ", figure(kernel.avg_ns, duration, `${path}.avg_ns`), " each",
    kernel.grid && kernel.block && `; grid ${blocks(kernel.grid)} of ${blocks(kernel.block)} threads`,
    kernel.elements && (kernel.elements.exact !== null
      ? ["; ", figure(kernel.elements.exact, count, `${path}.elements.exact`), " elements"]
      : `; ${count(kernel.elements.min)} to ${count(kernel.elements.max)} elements`),
    kernel.bytes !== null && ["; ", figure(kernel.bytes, bytes, `${path}.bytes`), " a call"],
    kernel.gbps !== null && [" at ", figure(kernel.gbps, number, `${path}.gbps`), " GB/s"],
    kernel.of_peak !== null && [", ", figure(kernel.of_peak, percent, `${path}.of_peak`), " of peak"],
  ];
}

function tensorWords(suspect: Suspect, path: string): Child {
  const tensor = suspect.tensor;
  if (!tensor) return null;
  const match: Record<string, string> = {
    "exact": ", an exact match", "within-launch-rounding": ", within the rounding of the launch", "inferred": ", inferred"};
  return [name(tensor.name), tensor.shape && ` [${tensor.shape.join(", ")}]`, tensor.dtype && [" ", name(tensor.dtype)],
    tensor.elements !== null && [": ", figure(tensor.elements, count, `${path}.tensor.elements`), " elements"],
    tensor.match && (match[tensor.match] ?? `, ${tensor.match}`),
    suspect.live_fraction !== null && ["; ", figure(suspect.live_fraction, percent, `${path}.live_fraction`), " of it in use"]];
}

function factRows(facts: Fact[], ids: string[]): Child[][] {
  return ids.flatMap((id) => {
    const at = facts.findIndex((fact) => fact.id === id);
    const fact = facts[at];
    if (!fact) return [];
    const show = UNITS[fact.unit] ?? amount;
    const unit = UNITS[fact.unit] || fact.unit === "1" ? null : ` ${fact.unit}`;
    return [[fact.id, name(fact.name), [figure(fact.value, show, `facts[${at}].value`), unit], name(fact.how), fact.query && el("code", {}, fact.query)]];
  });
}

function facts(answer: Answer, suspect: Suspect): Child {
  const rows = factRows(answer.facts, suspect.facts);
  if (rows.length === 0) return null;
  return el("details", {}, el("summary", {}, `${rows.length} facts`),
    table(`facts about ${suspect.id}`, [{title: "fact"}, {title: "what"}, {title: "value", number: true}, {title: "how it was had"}, {title: "ask again"}], rows));
}

// `k`: its largest kernel, an index into the answer's. `show`: leads to its calls in the timeline, where they are drawn.
function card(answer: Answer, suspect: Suspect, i: number, k: number | undefined, show: Maybe<() => void>): HTMLElement {
  const path = `suspects[${i}]`;
  const kernel = k === undefined ? undefined : answer.kernels[k];
  const button = el("button", {type: "button"}, "show in the timeline");
  if (show) button.addEventListener("click", show);
  return el("article", {class: `suspect ${suspect.verdict}`, "aria-labelledby": `suspect-${i}`},
    el("h3", {id: `suspect-${i}`}, `${suspect.rank}  ${suspect.id}`),
    el("p", {class: "badges"},
      el("span", {class: `badge ${suspect.verdict}`}, suspect.verdict), el("span", {class: "badge"}, suspect.confidence),
      el("span", {class: "badge"}, figure(suspect.exposed_ns_per_step, duration, `${path}.exposed_ns_per_step`), " exposed a step"),
      el("span", {class: "badge"}, share(suspect.share, `${path}.share`)), show && button),
    el("p", {}, suspect.claim),
    el("dl", {class: "lines"},
      line("tensor", tensorWords(suspect, path)),
      kernel && line("kernel", name(kernel.short), suspect.kernels.length > 1 && ` (and ${suspect.kernels.length - 1} more)`, el("br"),
        kernelFigures(kernel, `kernels[${k}]`)),
      line("at", suspect.where.map((source, w) => [w > 0 && el("br"), place(source)]).flat()),
      line("gain", gainWords(suspect.gain, `${path}.gain`)),
      line("fix", suspect.fix.summary, suspect.fix.alternatives.map((other) => [el("br"), "or: ", other]).flat()),
      line("disproved if", suspect.disproved_if)),
    facts(answer, suspect));
}

export function suspectsSection(answer: Answer, drawing: Drawing, show: (suspect: number) => Maybe<() => void>): Child {
  if (answer.suspects.length === 0) return null;
  return section("suspects", answer.suspects.length === 1 ? "The suspect" : "Suspects",
    answer.suspects.map((suspect, i) => card(answer, suspect, i, drawing.accused[i]?.kernels[0], show(i))));
}

export function innocentSection(answer: Answer): Child {
  const {ruled_out: ruledOut, healthy} = answer;
  if (ruledOut.length + healthy.length === 0) return null;
  const out = ruledOut.length > 0 && table("who is ruled out, and by which number",
    [{title: "hypothesis"}, {title: "would say"}, {title: "ruled out because"}, {title: "facts"}],
    ruledOut.map((r) => [r.hypothesis, r.claim, r.because, r.facts.join(" ")]));
  const well = healthy.length > 0 && table("what is well", [{title: "what"}, {title: "because"}, {title: "at most to gain", number: true}],
    healthy.map((h, i) => [h.what, h.because, figure(h.at_most_gain_ns, duration, `healthy[${i}].at_most_gain_ns`)]));
  return out ? section("innocent", "Ruled out", out, well && [el("h3", {}, "Healthy"), well]) : section("innocent", "Healthy", well);
}
