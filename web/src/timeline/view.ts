// The timeline as it is painted: lanes below one another on one canvas, of which only what is visible is drawn. A row
// costs as many rectangles as it has pixels at most, however many events lie in it. Knows no input.
import {visible} from "../dom";
import {duration} from "../format";
import {accusedColor, hostColor, inkOn, ownerColor, theme} from "../palette";
import {firstAfter, Kind, NONE, shownRows, type Lane, type Model, type Row} from "./model";

export const RULER = 24;
const TITLE = 18;
const GAP = 6, CHARACTER = 6.1, LABELLED = 34;

interface Colors { ground: string; text: string; dim: string; line: string; band: string }
const COLORS: Record<"light" | "dark", Colors> = {
  light: {ground: "#ffffff", text: "#1b2027", dim: "#56606c", line: "#dde1e7", band: "rgba(60,90,140,.07)"},
  dark: {ground: "#15181d", text: "#e8ebef", dim: "#9aa4b1", line: "#2b3138", band: "rgba(150,180,240,.09)"},
};

// As many characters as there is room for; of a path the leading folders give way.
function fitted(text: string, room: number): string {
  if (text.length <= room) return text;
  const slash = text.search(/[^/]*$/);
  return (slash > 0 && text.startsWith("/") ? text.slice(slash) : text).slice(0, room);
}

export class View {
  from: number;
  to: number;
  top = 0;        // scrolled by this many pixels
  selected = NONE;
  hovered = NONE;
  found: Set<number> | null = null;  // what a search found; others are dim
  drawMs = 0;     // the last drawing took
  private width = 0;
  private height = 0;
  private readonly context: CanvasRenderingContext2D;
  private readonly fills = new Map<string, string>();

  constructor(readonly model: Model, readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d", {alpha: false})!;
    const step = model.drawing.step!;
    this.from = step.from_ns;
    this.to = step.to_ns;
  }

  resize(width: number, height: number): void {
    const ratio = devicePixelRatio;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  rowHeight(lane: Lane): number { return lane.of === "thread" ? 16 : 24; }
  laneHeight(lane: Lane): number { return TITLE + this.rowHeight(lane) * shownRows(lane).length + GAP; }
  contentHeight(): number {
    return this.model.lanes.reduce((sum, lane) => sum + this.laneHeight(lane), RULER);
  }
  laneTop(index: number): number {
    return this.model.lanes.slice(0, index).reduce((sum, lane) => sum + this.laneHeight(lane), RULER);
  }

  x(ns: number): number { return (ns - this.from) / (this.to - this.from) * this.width; }
  time(x: number): number { return this.from + x / this.width * (this.to - this.from); }

  // Keeps the window inside what is drawn, and no shorter than 20 ns.
  show(from: number, to: number): void {
    const {from_ns: first, to_ns: last} = this.model.drawing.step!;
    const room = (last - first) * 0.02;
    const length = Math.min(Math.max(20, to - from), last - first + 2 * room);
    const begin = Math.min(Math.max(from, first - room), last + room - length);
    this.from = begin;
    this.to = begin + length;
  }

  // The lane, and the event, at a place of the canvas.
  at(x: number, y: number): {lane: number; title: boolean; id: number} | null {
    if (y < RULER) return null;
    let top = RULER - this.top;
    for (let l = 0; l < this.model.lanes.length; ++l) {
      const lane = this.model.lanes[l]!;
      const height = this.laneHeight(lane);
      if (y < top + height) {
        if (y < top + TITLE) return {lane: l, title: true, id: NONE};
        const row = shownRows(lane)[Math.floor((y - top - TITLE) / this.rowHeight(lane))];
        return {lane: l, title: false, id: row ? this.inRow(row, x) : NONE};
      }
      top += height;
    }
    return null;
  }

  // The event under x, or, of those too narrow to hit, the nearest within two pixels.
  private inRow(row: Row, x: number): number {
    const i = firstAfter(row.begin, this.time(x + 2)) - 1;
    for (let k = i; k >= Math.max(0, i - 2); --k) if (row.end[k]! > this.time(x - 2)) return row.id[k]!;
    return NONE;
  }

  draw(): void {
    const begun = performance.now();
    const colors = COLORS[theme()];
    const c = this.context;
    c.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    c.fillStyle = colors.ground;
    c.fillRect(0, 0, this.width, this.height);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.direction = "ltr";
    this.fills.clear();
    this.drawLayers(colors);
    let top = RULER - this.top;
    for (const lane of this.model.lanes) {
      const height = this.laneHeight(lane);
      if (top + height > RULER && top < this.height) this.drawLane(lane, top, colors);
      top += height;
    }
    this.drawLink(colors);
    this.drawRuler(colors);
    this.drawMs = performance.now() - begun;
  }

  private streamsBand(): [number, number] {
    const streams = this.model.lanes.filter((lane) => lane.of !== "thread").length;
    return [RULER - this.top, this.laneTop(streams) - this.top];
  }

  private drawLayers(colors: Colors): void {
    const {begin, length} = this.model.layers;
    const [top, bottom] = this.streamsBand();
    for (let i = Math.max(0, firstAfter(begin, this.from) - 1); i < begin.length && begin[i]! < this.to; ++i) {
      const left = this.x(begin[i]!), width = this.x(begin[i]! + length[i]!) - left;
      if (i % 2 === 0) {
        this.context.fillStyle = colors.band;
        this.context.fillRect(left, top, Math.max(1, width), bottom - top);
      }
    }
  }

  private drawLane(lane: Lane, top: number, colors: Colors): void {
    const c = this.context;
    c.fillStyle = colors.line;
    c.fillRect(0, top, this.width, 1);
    const high = this.rowHeight(lane);
    shownRows(lane).forEach((row, r) => {
      const y = top + TITLE + r * high;
      if (y + high > RULER && y < this.height) this.drawRow(row, y, high, colors);
    });
    c.fillStyle = colors.dim;
    const arrow = lane.rows.length < 2 ? "" : lane.open ? "▾ " : "▸ ";
    c.fillText(`${arrow}${visible(lane.title)}`, 4, top + TITLE / 2 + 1);
  }

  private fill(id: number): string {
    const model = this.model, kind = model.kind[id]! as Kind;
    if (model.accusedBy[id] !== NONE) return accusedColor(theme());
    const key = kind >= Kind.Activity ? model.owner(id) : String(kind);
    let color = this.fills.get(key);
    if (!color) {
      color = kind >= Kind.Activity ? ownerColor(key, theme()) : hostColor(model.drawing.host_kinds[kind]!, theme());
      this.fills.set(key, color);
    }
    return color;
  }

  // Where events are narrower than a pixel, one stands for all of that pixel: of the accused one, if it holds any.
  private drawRow(row: Row, y: number, high: number, colors: Colors): void {
    const c = this.context, model = this.model;
    const perPixel = (this.to - this.from) / this.width;
    for (let i = firstAfter(row.end, this.from); i < row.begin.length && row.begin[i]! < this.to;) {
      let id = row.id[i]!;
      const left = Math.max(-1, this.x(row.begin[i]!)), right = Math.min(this.width + 1, this.x(row.end[i]!));
      let next = i + 1;
      if (right - left < 1) {
        next = Math.max(next, firstAfter(row.end, row.begin[i]! + perPixel, next));
        for (let k = i; k < Math.min(next, i + 64); ++k) {
          if (model.accusedBy[row.id[k]!] !== NONE || this.found?.has(row.id[k]!)) { id = row.id[k]!; break; }
        }
      }
      const dim = (this.found && !this.found.has(id)) || !model.ofStep(id);
      const color = this.fill(id);
      c.globalAlpha = dim ? 0.25 : 1;
      c.fillStyle = color;
      const width = Math.max(1, right - left - (right - left > 3 ? 1 : 0));
      c.fillRect(left, y + 1, width, high - 2);
      if (width > LABELLED) {
        c.fillStyle = dim ? colors.text : inkOn(color);
        c.fillText(fitted(visible(model.label(id)), Math.floor((width - 6) / CHARACTER)), Math.max(left, 0) + 3, y + high / 2 + 0.5);
      }
      c.globalAlpha = 1;
      if (id === this.selected || id === this.hovered) {
        c.strokeStyle = colors.text;
        c.lineWidth = id === this.selected ? 2 : 1;
        c.strokeRect(left + 0.5, y + 1.5, Math.max(2, width - 1), high - 3);
      }
      i = next;
    }
  }

  yOf(id: number): number {
    const lane = this.model.lanes[this.model.lane[id]!]!;
    const row = lane.open ? Math.max(0, this.model.row[id]! - lane.outer) : 0;
    return this.laneTop(this.model.lane[id]!) - this.top + TITLE + row * this.rowHeight(lane);
  }

  // From the selected activity to its launch, and the other way.
  private drawLink(colors: Colors): void {
    const link = this.selected === NONE ? NONE : this.model.link[this.selected]!;
    if (link === NONE) return;
    const [call, activity] = this.model.kind[link] === Kind.Call ? [link, this.selected] : [this.selected, link];
    const c = this.context;
    const from = [this.x(this.model.begin[call]!), this.yOf(call)], to = [this.x(this.model.begin[activity]!), this.yOf(activity) + this.rowHeight(this.model.lanes[this.model.lane[activity]!]!)];
    c.strokeStyle = colors.text;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(from[0]!, from[1]!);
    c.bezierCurveTo(from[0]!, (from[1]! + to[1]!) / 2, to[0]!, (from[1]! + to[1]!) / 2, to[0]!, to[1]!);
    c.stroke();
  }

  private drawRuler(colors: Colors): void {
    const c = this.context;
    c.fillStyle = colors.ground;
    c.fillRect(0, 0, this.width, RULER);
    c.fillStyle = colors.line;
    c.fillRect(0, RULER - 1, this.width, 1);
    const rough = (this.to - this.from) / Math.max(2, this.width / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const tick = [1, 2, 5, 10].map((m) => m * power).find((t) => t >= rough)!;
    for (let t = Math.ceil(this.from / tick) * tick; t <= this.to; t += tick) {
      const x = this.x(t);
      c.fillStyle = colors.line;
      c.fillRect(x, 0, 1, RULER);
      c.fillStyle = colors.dim;
      c.fillText(duration(Math.round(t)), x + 4, RULER / 2);
    }
    this.drawLayerNumbers(colors);
  }

  private drawLayerNumbers(colors: Colors): void {
    const {begin, length} = this.model.layers;
    const y = this.streamsBand()[0] + TITLE / 2 + 1;
    if (y < RULER) return;
    this.context.fillStyle = colors.dim;
    for (let i = Math.max(0, firstAfter(begin, this.from) - 1); i < begin.length && begin[i]! < this.to; ++i) {
      const left = this.x(begin[i]!), width = this.x(begin[i]! + length[i]!) - left;
      if (width > 60 && left > 90) this.context.fillText(`layer ${i}`, left + 3, y);
    }
  }
}
