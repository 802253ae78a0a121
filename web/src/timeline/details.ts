// What is known about one event of the timeline.
import {el, line, name, type Child} from "../dom";
import {bytes, count, duration, figure, number, percent} from "../format";
import {place} from "../words";
import {Kind, KIND_WORDS, NONE, type Model} from "./model";

// Operators or frames around a call, outermost first.
function around(model: Model, id: number, kind: Kind): string[] {
  const names: string[] = [];
  for (let at = model.parent[id]!; at !== NONE; at = model.parent[at]!) if (model.kind[at] === kind) names.unshift(model.label(at));
  return names;
}

const chain = (names: string[]): Child => names.flatMap((n, i): Child[] => [i > 0 && " › ", name(n)]);

function kernelLines(model: Model, id: number): Child[] {
  const k = model.what[id]!;
  const kernel = k >= 0 ? model.answer.kernels[k]! : null;
  if (!kernel) return [];
  const path = `kernels[${k}]`;
  const own = model.length[id]!;
  const size = (dim: number[]): string => dim.map(count).join(" × ");
  return [
    line("kind", kernel.kind, kernel.regime !== "unknown" && `, bound by ${kernel.regime}`),
    line("geometry", kernel.grid && `grid ${size(kernel.grid)}`, kernel.block && ` of ${size(kernel.block)} threads`),
    line("elements", kernel.elements && (kernel.elements.exact !== null ? figure(kernel.elements.exact, count, `${path}.elements.exact`)
      : `${count(kernel.elements.min)} to ${count(kernel.elements.max)}`),
      kernel.dims && kernel.dims.length > 0 && ` [${kernel.dims.join(", ")}]`),
    line("types", (kernel.dtype_in || kernel.dtype_out) && `${kernel.dtype_in ?? "?"} → ${kernel.dtype_out ?? "?"}`),
    line("bytes", kernel.bytes !== null && [figure(kernel.bytes, bytes, `${path}.bytes`), own > 0 && `, ${number(kernel.bytes / own)} GB/s in this call`]),
    line("all its calls", figure(kernel.calls_per_step, number, `${path}.calls_per_step`), " a step, ", figure(kernel.avg_ns, duration, `${path}.avg_ns`), " each",
      kernel.gbps !== null && [", ", figure(kernel.gbps, number, `${path}.gbps`), " GB/s"],
      kernel.of_peak !== null && [", ", figure(kernel.of_peak, percent, `${path}.of_peak`), " of peak"]),
    line("doubt", kernel.doubt && name(kernel.doubt)),
  ];
}

function originLines(model: Model, id: number): Child[] {
  const k = model.what[id]!;
  const kernel = k >= 0 ? model.answer.kernels[k]! : null;
  const call = model.link[id]!;
  const ops = call === NONE ? [] : around(model, call, Kind.Op);
  const frames = call === NONE ? [] : around(model, call, Kind.Frame);
  const lent = kernel?.op_from === "mapping" ? " (lent by a capture)" : null;
  return [
    line("operators", ops.length > 0 ? chain(ops) : kernel && kernel.op_chain.length > 0 && [chain(kernel.op_chain), lent]),
    line("source", kernel?.source && [place(kernel.source), lent]),
    line("innermost frame", frames.length > 0 && name(frames[frames.length - 1]!)),
    line("launched by", call !== NONE ? [name(model.label(call)), ` on ${model.lanes[model.lane[call]!]!.title}, `,
      duration(Math.abs(model.begin[id]! - model.begin[call]!)), model.begin[id]! < model.begin[call]! ? " later (clocks disagree)" : " before it began"]
      : kernel?.launch && [name(kernel.launch.api), ` on thread ${kernel.launch.thread}`]),
  ];
}

const IDLE_WORDS: Record<string, string> = {
  "idle-host-launch": "the device waits for a launch that comes late", "idle-host-sync": "the host waited for the device just before",
  "idle-host-work": "the launching thread computes something of its own", "idle-stall": "nothing at all happens on the host",
  "unexplained": "nothing recorded explains it",
};

function gapLines(model: Model, id: number): Child[] {
  const next = model.nextActivity(model.end(id));
  const call = next === NONE ? NONE : model.link[next]!;
  return [
    line("what", "the device is idle: ", IDLE_WORDS[model.owner(id)] ?? model.owner(id)),
    line("ended by", next !== NONE && [name(model.label(next)), call !== NONE && [", launched by ", name(model.label(call)),
      ` ${duration(Math.max(0, model.begin[next]! - model.begin[call]!))} before`]]),
    line("around that launch", call !== NONE && model.parent[call] !== NONE && chain([...around(model, call, Kind.Frame).slice(-2), ...around(model, call, Kind.Op)])),
  ];
}

export function details(model: Model, id: number): Child[] {
  const kind = model.kind[id]! as Kind;
  const suspect = model.accusedBy[id] === NONE ? null : model.answer.suspects[model.accusedBy[id]!];
  const layer = kind === Kind.Activity ? model.layerOf(id) : NONE;
  const k = model.what[id]!;
  const full = kind === Kind.Activity && k >= 0 ? model.answer.kernels[k]!.name : null;
  return [
    el("h3", {}, name(model.label(id)), suspect && el("span", {class: `badge ${suspect.verdict}`}, suspect.id)),
    el("dl", {class: "lines"},
      line("took", el("strong", {}, duration(model.length[id]!)), ` (${count(model.length[id]!)} ns)`),
      line("begins", `${duration(model.begin[id]!)} from the step's begin`, layer !== NONE && `, in layer ${layer}`,
        !model.ofStep(id) && ", of another step"),
      kind !== Kind.Gap && line("what", KIND_WORDS[kind]!, " on ", name(model.lanes[model.lane[id]!]!.title)),
      kind === Kind.Gap && gapLines(model, id),
      kind === Kind.Activity && [kernelLines(model, id), originLines(model, id)],
      kind < Kind.Activity && [
        line("inside", model.parent[id] !== NONE && chain([...around(model, id, Kind.Frame).slice(-3), ...around(model, id, Kind.Op)])),
        line("launched", model.link[id] !== NONE && name(model.label(model.link[id]!)))]),
    full && full !== model.label(id) && el("details", {}, el("summary", {}, "full name"), el("p", {}, name(full))),
  ];
}
