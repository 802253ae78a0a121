// The two documents that the page carries: the answer, as --json prints it (docs/schema/answer.schema.json), and the
// drawing of one step (docs/schema/drawing.schema.json). Times are integer ns; null is not known. Only what the page
// reads is named here.

export type Maybe<T> = T | null;

export interface Source { file: string; line: number; function: Maybe<string>; exact: boolean }
export interface Note { code: string; severity: string; count: number; where: Maybe<string>; message: string }
export interface BudgetRow { owner: string; ns_per_step: number; share: number; calls_per_step: number }
export interface Elements { min: number; max: number; exact: Maybe<number>; how: Maybe<string> }

export interface Kernel {
  name: string; short: string; kind: string;
  calls_per_step: number; ns_per_step: number; share: number; avg_ns: number; exposed_ns_per_step: number;
  grid: Maybe<number[]>; block: Maybe<number[]>; elements: Maybe<Elements>; dims: Maybe<number[]>;
  dtype_in: Maybe<string>; dtype_out: Maybe<string>;
  bytes: Maybe<number>; flops: Maybe<number>; gbps: Maybe<number>; of_peak: Maybe<number>; regime: string; doubt: Maybe<string>;
  op: Maybe<string>; op_chain: string[]; op_from: Maybe<string>;
  launch: Maybe<{api: string; thread: string | number}>; source: Maybe<Source>;
}

export interface Gain {
  step_ns_now: number; step_ns_after: {low: number; expected: number; high: number};
  tokens_per_s_after: Maybe<number>; bound_by_after: Maybe<string>; method: string;
}
export interface Remedy { name: string; summary: string; gain: Maybe<Gain> }

export interface Suspect {
  id: string; rank: number; verdict: string; cause?: string; confidence: string; claim: string;
  ns_per_step: number; exposed_ns_per_step: number; share: number;
  kernels: string[]; where: Source[];
  tensor: Maybe<{name: string; shape: Maybe<number[]>; dtype: Maybe<string>; elements: Maybe<number>; match: Maybe<string>}>;
  live_fraction: Maybe<number>; facts: string[]; disproved_if: string;
  fix: {summary: string; alternatives: string[]; options: Remedy[]}; gain: Maybe<Gain>;
}

export interface RankFigures {
  rank: Maybe<number>; label: Maybe<string>; process: Maybe<string>; device: number; headline: boolean;
  refused: Maybe<string>; kernels: Maybe<number>; steps: Maybe<number>; mean_ns: Maybe<number>;
  work_ns_per_step: Maybe<number>; comm_ns_per_step: Maybe<number>; budget: BudgetRow[];
}

export interface Fact { id: string; name: string; value: number; unit: string; how: string; query: Maybe<string> }

export interface Answer {
  tool: {name: string; version: string};
  inputs: {path: string; format: Maybe<string>; bytes: Maybe<number>; events: Maybe<number>}[];
  quality: {
    usable: boolean; gpu_time_attributed: Record<"op" | "source" | "step" | "layer", Maybe<number>>; notes: Note[];
  };
  device: {name: Maybe<string>; arch: Maybe<string>; peak_gbps: Maybe<number>; peak_source: Maybe<string>; peak_verified: Maybe<boolean>;
    half_tflops: Maybe<number>; fp8_tflops: Maybe<number>};
  model: {name: Maybe<string>; layers: Maybe<number>};
  steps: {
    count: Maybe<number>; kind: Maybe<string>; how: Maybe<string>; mean_ns: Maybe<number>; median_ns: Maybe<number>;
    p99_ns: Maybe<number>; used: Maybe<number>; busy_ns: Maybe<number>; tokens: Maybe<number>;
    groups: {kind: string; batch: Maybe<number>; count: number; median_ns: number}[];
    outliers: {index: number; ns: number; cause: string}[];
  };
  layers: {count: Maybe<number>};
  budget: BudgetRow[]; kernels: Kernel[]; headline: Maybe<string>; suspects: Suspect[];
  ruled_out: {hypothesis: string; claim: string; because: string; facts: string[]}[];
  healthy: {what: string; because: string; at_most_gain_ns: Maybe<number>}[];
  floor: {step_ns: Maybe<number>; by: {component: string; ns: number; bytes: number}[]; notes: string[]};
  retiming: {reproduces_step_within: Maybe<number>; off: Maybe<string>};
  ranks: RankFigures[]; facts: Fact[];
}

// Begins are differences from the one before.
export interface StreamColumns { name: string; begin_ns: number[]; ns: number[]; kernel: number[]; launch: number[] }
export interface ThreadColumns {
  name: string; launches: number; begin_ns: number[]; ns: number[]; name_index: number[]; kind: number[];
}

export interface Drawing {
  steps: {left_out: number; ns: number[]; excluded: Maybe<string>[]};
  step: Maybe<{index: number; ns: number; mark: Maybe<string>; from_ns: number; to_ns: number}>;
  host_kinds: string[]; names: string[]; streams: StreamColumns[]; threads: ThreadColumns[];
  gaps: {begin_ns: number[]; ns: number[]; owner: string[]};
  layers: {how: Maybe<string>; by: Maybe<string>; begin_ns: number[]; ns: number[]};
  accused: {kernels: number[]; idle_owner: Maybe<string>}[];
  left_out: Record<string, number>;
}

function read<T>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`this page has lost its data (${id})`);
  return JSON.parse(element.textContent ?? "null") as T;
}

export const readAnswer = (): Answer => read<Answer>("answer");
export const readDrawing = (): Maybe<Drawing> => read<Maybe<Drawing>>("drawing");

// Sums of differences: [5, 3, 2] is [5, 8, 10].
export function fromDifferences(differences: number[]): Float64Array {
  const sums = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < sums.length; ++i) sums[i] = sum += differences[i]!;
  return sums;
}
