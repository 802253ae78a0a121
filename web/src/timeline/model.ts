// The timeline's events as columns, laid out: which lane, which row of it, what encloses what. Ids run over the threads'
// events first, as the drawing counts them, then the streams', then the idle times. O(n) once; a search is O(names + n).
import {fromDifferences, type Answer, type Drawing} from "../data";
import {bytes, count, duration, number} from "../format";

export const enum Kind { Frame, Mark, Op, Call, Activity, Gap }
export const KIND_WORDS = ["Python function", "mark", "operator", "API call", "device activity", "idle"];
export const NONE = -1;

// Events of one row do not overlap: both columns ascend.
export interface Row { begin: Float64Array; end: Float64Array; id: Int32Array }
// outer: how many rows, from the first on, hold one function around all that is drawn, and are not shown.
export interface Lane {
  title: string; of: "gaps" | "stream" | "thread"; rows: Row[]; count: number; open: boolean; launches: number; outer: number;
}
export const shownRows = (lane: Lane): Row[] => lane.rows.slice(lane.outer, lane.open ? undefined : lane.outer + 1);

export class Model {
  readonly lanes: Lane[] = [];
  readonly begin: Float64Array;
  readonly length: Float64Array;
  readonly kind: Uint8Array;
  readonly lane: Uint16Array;
  readonly row: Uint16Array;
  readonly what: Int32Array;    // of activities an index into the answer's kernels, or -1 - i for names[i]; of gaps into owners
  readonly link: Int32Array;    // of activities the call that launched them, of calls the first that they launched
  readonly parent: Int32Array;  // what encloses it on its thread
  readonly accusedBy: Int16Array;  // suspect
  readonly layers: {begin: Float64Array; length: number[]};
  private next = 0;

  constructor(readonly answer: Answer, readonly drawing: Drawing) {
    const lengths = [...drawing.threads, ...drawing.streams].map((lane) => lane.ns.length);
    const n = lengths.reduce((sum, length) => sum + length, drawing.gaps.ns.length);
    this.begin = new Float64Array(n);
    this.length = new Float64Array(n);
    this.kind = new Uint8Array(n);
    this.lane = new Uint16Array(n);
    this.row = new Uint16Array(n);
    this.what = new Int32Array(n);
    this.link = new Int32Array(n).fill(NONE);
    this.parent = new Int32Array(n).fill(NONE);
    this.accusedBy = new Int16Array(n).fill(NONE);
    this.layers = {begin: fromDifferences(drawing.layers.begin_ns), length: drawing.layers.ns};
    const threads = drawing.threads.map((lane, i) => this.addThread(lane, i));
    const streams = drawing.streams.map((lane) => this.addStream(lane));
    this.lanes.push(this.addGaps(), ...streams, ...threads);
    this.lanes.forEach((lane, l) => lane.rows.forEach((row) => row.id.forEach((id) => { this.lane[id] = l; })));
    this.accuse();
  }

  get size(): number { return this.begin.length; }
  end(id: number): number { return this.begin[id]! + this.length[id]!; }

  private put(begin: number, length: number, kind: Kind, what: number): number {
    const id = this.next++;
    this.begin[id] = begin;
    this.length[id] = length;
    this.kind[id] = kind;
    this.what[id] = what;
    return id;
  }

  private rowsOf(ids: number[][]): Row[] {
    return ids.map((row, r) => {
      for (const id of row) this.row[id] = r;
      return {begin: Float64Array.from(row, (id) => this.begin[id]!), end: Float64Array.from(row, (id) => this.end(id)), id: Int32Array.from(row)};
    });
  }

  // An event lies below what is still open when it begins.
  private addThread(columns: Drawing["threads"][number], index: number): Lane {
    const begins = fromDifferences(columns.begin_ns);
    const rows: number[][] = [];
    const open: number[] = [];
    for (let i = 0; i < begins.length; ++i) {
      const id = this.put(begins[i]!, columns.ns[i]!, columns.kind[i]! as Kind, columns.name_index[i]!);
      while (open.length > 0 && this.end(open[open.length - 1]!) <= begins[i]!) open.pop();
      this.parent[id] = open[open.length - 1] ?? NONE;
      (rows[open.length] ??= []).push(id);
      open.push(id);
    }
    const {from_ns, to_ns} = this.drawing.step!;
    const around = (row: number[]): boolean => row.length === 1 && this.begin[row[0]!]! <= from_ns && this.end(row[0]!) >= to_ns;
    const inner = rows.findIndex((row) => !around(row));
    return {title: columns.name, of: "thread", rows: this.rowsOf(rows), count: begins.length, open: index === 0 && columns.launches > 0,
      launches: columns.launches, outer: Math.max(0, inner)};
  }

  // Activities that overlap stand in rows of their own.
  private addStream(columns: Drawing["streams"][number]): Lane {
    const begins = fromDifferences(columns.begin_ns);
    const rows: number[][] = [];
    for (let i = 0; i < begins.length; ++i) {
      const id = this.put(begins[i]!, columns.ns[i]!, Kind.Activity, columns.kernel[i]!);
      const launch = columns.launch[i]!;
      this.link[id] = launch;
      if (launch >= 0 && this.link[launch] === NONE) this.link[launch] = id;
      let r = rows.findIndex((row) => this.end(row[row.length - 1]!) <= begins[i]!);
      if (r < 0) r = rows.push([]) - 1;
      rows[r]!.push(id);
    }
    return {title: columns.name, of: "stream", rows: this.rowsOf(rows), count: begins.length, open: true, launches: 0, outer: 0};
  }

  private addGaps(): Lane {
    const {begin_ns, ns} = this.drawing.gaps;
    const begins = fromDifferences(begin_ns);
    const ids = Array.from(begins, (begin, i) => this.put(begin, ns[i]!, Kind.Gap, i));
    return {title: "idle, and why", of: "gaps", rows: this.rowsOf([ids]), count: ids.length, open: true, launches: 0, outer: 0};
  }

  private accuse(): void {
    const ofKernel = new Map<number, number>(), ofOwner = new Map<string, number>();
    this.drawing.accused.forEach((accused, suspect) => {
      for (const k of accused.kernels) if (!ofKernel.has(k)) ofKernel.set(k, suspect);
      if (accused.idle_owner && !ofOwner.has(accused.idle_owner)) ofOwner.set(accused.idle_owner, suspect);
    });
    for (let id = 0; id < this.size; ++id) {
      const what = this.what[id]!;
      if (this.kind[id] === Kind.Activity) this.accusedBy[id] = ofKernel.get(what) ?? NONE;
      if (this.kind[id] === Kind.Gap) this.accusedBy[id] = ofOwner.get(this.drawing.gaps.owner[what]!) ?? NONE;
    }
  }

  // Whether it belongs to the step that is drawn, not to one before or behind it.
  ofStep(id: number): boolean {
    const step = this.drawing.step!;
    return this.kind[id]! < Kind.Activity || (this.begin[id]! >= 0 && this.begin[id]! < step.ns);
  }

  owner(id: number): string {
    const what = this.what[id]!;
    if (this.kind[id] === Kind.Gap) return this.drawing.gaps.owner[what]!;
    return what >= 0 ? this.answer.kernels[what]!.kind : "other-kernel";
  }

  label(id: number): string {
    const what = this.what[id]!;
    if (this.kind[id] === Kind.Gap) return this.drawing.gaps.owner[what]!;
    if (this.kind[id] !== Kind.Activity) return this.drawing.names[what]!;
    return what >= 0 ? this.answer.kernels[what]!.short : this.drawing.names[-1 - what]!;
  }

  layerOf(id: number): number {
    const middle = this.begin[id]! + this.length[id]! / 2;
    const i = firstAfter(this.layers.begin, middle) - 1;
    return i >= 0 && middle < this.layers.begin[i]! + this.layers.length[i]! ? i : NONE;
  }

  // Ids, in time order, of the events whose name holds the words. Each distinct name is looked at once.
  search(words: string): number[] {
    const wanted = words.toLowerCase();
    const holds = (text: string): boolean => text.toLowerCase().includes(wanted);
    const names = this.drawing.names.map(holds);
    const kernels = this.answer.kernels.map((k) => holds(k.short) || holds(k.name) || holds(k.kind));
    const owners = this.drawing.gaps.owner.map(holds);
    const found: number[] = [];
    for (let id = 0; id < this.size; ++id) {
      const what = this.what[id]!;
      const hit = this.kind[id] === Kind.Gap ? owners[what] : this.kind[id] !== Kind.Activity ? names[what] : what >= 0 ? kernels[what] : names[-1 - what];
      if (hit) found.push(id);
    }
    return found.sort((a, b) => this.begin[a]! - this.begin[b]!);
  }

  ofSuspect(suspect: number): number[] {
    const found: number[] = [];
    for (let id = 0; id < this.size; ++id) if (this.accusedBy[id] === suspect && this.ofStep(id)) found.push(id);
    return found.sort((a, b) => this.begin[a]! - this.begin[b]!);
  }

  // The first activity of any stream that begins at `t` or behind.
  nextActivity(t: number): number {
    let next = NONE;
    for (const row of this.lanes.flatMap((lane) => (lane.of === "stream" ? lane.rows : []))) {
      const i = firstAfter(row.begin, t - 1);
      if (i < row.id.length && (next === NONE || row.begin[i]! < this.begin[next]!)) next = row.id[i]!;
    }
    return next;
  }

  // One line that says what an event is: of a kernel its geometry, bytes and rate, its operator and line.
  say(id: number): string {
    const lane = this.lanes[this.lane[id]!]!, took = this.length[id]!, what = this.what[id]!;
    const kernel = this.kind[id] === Kind.Activity && what >= 0 ? this.answer.kernels[what]! : null;
    const parts = [`${this.label(id)}: ${duration(took)}`];
    if (kernel?.grid && kernel.block) parts.push(`grid ${kernel.grid.map(count).join(" × ")} of ${kernel.block.map(count).join(" × ")}`);
    if (kernel?.bytes && took > 0) parts.push(`${bytes(kernel.bytes)} at ${number(kernel.bytes / took)} GB/s`);
    if (kernel?.op) parts.push(kernel.op);
    if (kernel?.source) parts.push(`${kernel.source.file.replace(/^.*\//, "")}:${kernel.source.line}`);
    if (!kernel) parts.push(KIND_WORDS[this.kind[id]!]!);
    return [...parts, lane.title].join("; ");
  }
}

// Index of the first value above `x` in an ascending column, from `low` on.
export function firstAfter(column: Float64Array, x: number, low = 0): number {
  let high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle]! > x) high = middle;
    else low = middle + 1;
  }
  return low;
}
