// Sentences that several sections say alike.
import type {Answer, Gain, Maybe, Source} from "./data";
import {el, name, type Child} from "./dom";
import {amount, duration, figure, number, percent} from "./format";

const BOUND: Record<string, string> = {gpu: "the GPU", "host-launch": "the host's launches", "host-sync": "the host's waits"};

export function place(source: Source): HTMLElement {
  const where = el("span", {class: "place"}, name(`${source.file}:${source.line}`));
  if (source.function) where.append(" ", name(source.function));
  if (!source.exact) where.append(" (where the function begins)");
  return where;
}

// "64.6 ms per step: 93.2 ms → 28.6 ms, 35.0 tokens/s, then bound by the GPU"
export function gainWords(gain: Maybe<Gain>, path: string): Child {
  if (!gain) return null;
  const bound = gain.method === "bound";
  const saved = gain.step_ns_now - gain.step_ns_after.expected;
  return [
    bound ? "at most " : "", el("strong", {}, duration(saved)), bound ? " per step (bound): " : " per step: ",
    figure(gain.step_ns_now, duration, `${path}.step_ns_now`), " → ",
    figure(gain.step_ns_after.expected, duration, `${path}.step_ns_after.expected`),
    gain.tokens_per_s_after !== null && [", ", figure(gain.tokens_per_s_after, number, `${path}.tokens_per_s_after`), " tokens/s"],
    gain.bound_by_after && `, then bound by ${BOUND[gain.bound_by_after] ?? gain.bound_by_after}`,
  ];
}

// "14 decode steps (batch 1)"
export function stepsWords(answer: Answer): Child {
  const {count, kind, used, groups, how} = answer.steps;
  const which = kind && kind !== "unknown" ? `${kind} ` : "";
  const remarks: Child[] = [];
  if (used !== null && used !== count) remarks.push([figure(used, amount, "steps.used"), " used"]);
  if (groups[0]?.batch != null) remarks.push(`batch ${groups[0].batch}`);
  if (how === "graph-replay") remarks.push("inferred from equal graph replays");
  if (how === "repetition") remarks.push("inferred from repeating kernels");
  return [figure(count, amount, "steps.count"), ` ${which}step${count === 1 ? "" : "s"}`,
    remarks.length > 0 && [" (", remarks.flatMap((r, i) => (i > 0 ? [", ", r] : [r])), ")"]];
}

export const share = (value: number, path: string): HTMLElement => figure(value, percent, path);
