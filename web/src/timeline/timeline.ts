// The timeline's section: its controls, and what pointer, wheel and keys do to the view.
import type {Answer, Drawing, Maybe} from "../data";
import {el, replace, section, type Child} from "../dom";
import {count, duration} from "../format";
import {onTheme} from "../palette";
import {details} from "./details";
import {firstAfter, Model, NONE, shownRows} from "./model";
import {RULER, View} from "./view";

const TALLEST = 620, WHEEL_ZOOM = 1.0015, KEY_ZOOM = 1.4, KEY_PAN = 0.15;

export class Timeline {
  readonly model: Model;
  readonly view: View;
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", {
    tabindex: 0, role: "application", "aria-label": "timeline of one step", "aria-describedby": "timeline-keys"});
  private readonly tall = el("div", {class: "tall"});
  private readonly place = el("div", {class: "timeline"}, this.canvas, this.tall);
  private readonly info = el("div", {class: "details", role: "region", "aria-label": "details of the selected event", "aria-live": "polite"});
  private readonly readout = el("p", {class: "readout"}, "\u00a0");
  private readonly input = el("input", {type: "search", id: "timeline-search", placeholder: "kernel, operator, function, owner"});
  private readonly matches = el("output", {for: "timeline-search"});
  private hits: number[] = [];
  private hit = NONE;
  private queued = false;

  constructor(answer: Answer, drawing: Drawing) {
    this.model = new Model(answer, drawing);
    this.view = new View(this.model, this.canvas);
    this.element = this.makeSection();
    new ResizeObserver(() => this.fit()).observe(this.place);
    this.place.addEventListener("scroll", () => { this.view.top = this.place.scrollTop; this.redraw(); });
    this.listenToPointer();
    this.canvas.addEventListener("keydown", (event) => { if (this.key(event)) event.preventDefault(); });
    onTheme(() => this.redraw());
  }

  private makeSection(): HTMLElement {
    const step = this.model.drawing.step!;
    const layers = this.model.drawing.layers;
    return section("timeline", `Step ${step.index} in time`,
      el("p", {class: "lead"}, step.mark && `${step.mark}: `, `${duration(step.ns)}, the used step nearest to the median. `,
        `${count(this.model.size)} events; what a suspect is blamed for is red.`,
        layers.how && ` Shaded: every second layer, inferred from ${layers.how === "order" ? "the order of its kernels" : "the calls of a kernel that runs once in each"}.`),
      this.toolbar(), this.place, this.readout,
      el("p", {class: "hint", id: "timeline-keys"},
        "Drag to move, click to select. Wheel: zoom (with Ctrl, or once the timeline has the focus). Keys: + and − zoom, A and D move, ",
        "arrows go to the next event, 0 shows the whole step, F fits the selection, / searches, Enter goes to the next match."),
      this.info, this.laneSwitches());
  }

  private button(label: string, what: string, act: () => void): HTMLButtonElement {
    const button = el("button", {type: "button", title: what, "aria-label": what}, label);
    button.addEventListener("click", act);
    return button;
  }

  private toolbar(): HTMLElement {
    this.input.addEventListener("input", () => this.search(this.input.value));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextHit(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") { this.input.value = ""; this.search(""); this.canvas.focus(); }
    });
    return el("div", {class: "toolbar", role: "toolbar", "aria-label": "timeline"},
      el("label", {for: "timeline-search"}, "Search"), this.input,
      this.button("‹", "previous match", () => this.nextHit(-1)), this.button("›", "next match", () => this.nextHit(1)), this.matches,
      el("span", {class: "space"}),
      this.button("+", "zoom in", () => this.zoom(1 / KEY_ZOOM)), this.button("−", "zoom out", () => this.zoom(KEY_ZOOM)),
      this.button("whole step", "show the whole step", () => this.whole()));
  }

  private laneSwitches(): Child {
    const switches = this.model.lanes.map((lane, l) => {
      const box = el("input", {type: "checkbox"});
      box.checked = lane.open;
      box.addEventListener("change", () => this.toggle(l, box.checked));
      this.boxes[l] = box;
      return el("label", {}, box, ` ${lane.title} (${count(lane.count)})`);
    });
    return el("details", {class: "lanes"}, el("summary", {}, "streams and threads"), el("div", {}, switches));
  }
  private readonly boxes: HTMLInputElement[] = [];

  private toggle(l: number, open: boolean): void {
    this.model.lanes[l]!.open = open;
    this.boxes[l]!.checked = open;
    this.fit();
  }

  // Height follows the open lanes; what is more than a screen scrolls.
  private fit(): void {
    const content = this.view.contentHeight();
    const height = Math.min(content, TALLEST);
    this.place.style.height = `${height}px`;
    this.tall.style.height = `${content - height}px`;
    this.view.resize(this.place.clientWidth, height);
    this.redraw();
  }

  redraw(): void {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      this.view.draw();
    });
  }

  private listenToPointer(): void {
    const canvas = this.canvas;
    let held: {x: number; y: number; from: number; to: number; top: number; moved: boolean} | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = {x: event.offsetX, y: event.offsetY, from: this.view.from, to: this.view.to, top: this.place.scrollTop, moved: false};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) return this.hover(event.offsetX, event.offsetY);
      const dx = event.offsetX - held.x;
      held.moved ||= Math.abs(dx) + Math.abs(event.offsetY - held.y) > 4;
      if (!held.moved) return;
      const shift = dx / canvas.clientWidth * (held.to - held.from);
      this.view.show(held.from - shift, held.to - shift);
      this.place.scrollTop = held.top - (event.offsetY - held.y);
      this.redraw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const clicked = held && !held.moved;
      held = null;
      if (clicked) this.click(event.offsetX, event.offsetY);
    });
    canvas.addEventListener("pointercancel", () => { held = null; });
    canvas.addEventListener("pointerleave", () => this.hover(-1, -1));
    canvas.addEventListener("dblclick", () => this.fitSelection());
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (sideways) this.pan(sideways / canvas.clientWidth);
      else this.zoom(WHEEL_ZOOM ** event.deltaY, this.view.time(event.offsetX));
    }, {passive: false});
  }

  private hover(x: number, y: number): void {
    const id = this.view.at(x, y)?.id ?? NONE;
    if (id === this.view.hovered) return;
    this.view.hovered = id;
    replace(this.readout, id === NONE ? "\u00a0" : this.model.say(id));
    this.redraw();
  }

  private click(x: number, y: number): void {
    const at = this.view.at(x, y);
    if (at?.title) return this.toggle(at.lane, !this.model.lanes[at.lane]!.open);
    this.select(at?.id ?? NONE);
  }

  select(id: number): void {
    this.view.selected = id;
    replace(this.info, id === NONE ? null : details(this.model, id));
    this.info.hidden = id === NONE;
    this.redraw();
  }

  zoom(factor: number, around = this.center()): void {
    const {from, to} = this.view;
    this.view.show(around - (around - from) * factor, around + (to - around) * factor);
    this.redraw();
  }
  pan(part: number): void {
    const shift = part * (this.view.to - this.view.from);
    this.view.show(this.view.from + shift, this.view.to + shift);
    this.redraw();
  }
  private whole(): void {
    const step = this.model.drawing.step!;
    this.view.show(step.from_ns, step.to_ns);
    this.redraw();
  }
  private center(): number {
    const {from, to, selected} = this.view;
    const middle = selected === NONE ? NaN : this.model.begin[selected]! + this.model.length[selected]! / 2;
    return middle > from && middle < to ? middle : (from + to) / 2;
  }
  private fitSelection(): void {
    if (this.view.selected === NONE) return;
    const begin = this.model.begin[this.view.selected]!, length = this.model.length[this.view.selected]!;
    this.view.show(begin - length, begin + 2 * length);
    this.redraw();
  }

  // Selects, and moves the view so that it is seen: at least 8 pixels wide, not behind an edge.
  reveal(id: number): void {
    const l = this.model.lane[id]!, lane = this.model.lanes[l]!;
    lane.outer = Math.min(lane.outer, this.model.row[id]!);
    this.toggle(l, lane.open || this.model.row[id]! > lane.outer);
    const begin = this.model.begin[id]!, length = Math.max(1, this.model.length[id]!);
    const wanted = Math.min(this.view.to - this.view.from, length * this.canvas.clientWidth / 8);
    const inside = begin >= this.view.from && begin + length <= this.view.to;
    if (!inside || wanted < this.view.to - this.view.from) {
      const middle = begin + length / 2;
      this.view.show(middle - wanted / 2, middle + wanted / 2);
    }
    const y = this.view.yOf(id);
    if (y < RULER || y + this.view.rowHeight(lane) > this.canvas.clientHeight) this.place.scrollTop += y - this.canvas.clientHeight / 2;
    this.select(id);
  }

  private search(words: string): void {
    this.hits = words ? this.model.search(words) : [];
    this.hit = NONE;
    this.view.found = words ? new Set(this.hits) : null;
    replace(this.matches, words && `${count(this.hits.length)} found`);
    this.redraw();
  }

  private nextHit(by: number): void {
    if (this.hits.length === 0) return;
    this.hit = this.hit === NONE ? (by > 0 ? 0 : this.hits.length - 1) : (this.hit + by + this.hits.length) % this.hits.length;
    this.reveal(this.hits[this.hit]!);
    replace(this.matches, `${count(this.hit + 1)} of ${count(this.hits.length)}`);
  }

  // What leads to a suspect's calls; null where none are drawn.
  leadTo(suspect: number): Maybe<() => void> {
    const ids = this.model.ofSuspect(suspect);
    if (ids.length === 0) return null;
    return () => {
      this.element.scrollIntoView();
      this.whole();
      this.canvas.focus({preventScroll: true});
      this.reveal(ids.reduce((a, b) => (this.model.length[b]! > this.model.length[a]! ? b : a)));
    };
  }

  // The neighbour of the selection in its row (sideways), or the event of the next row at its time.
  private step(sideways: number, down: number): void {
    const from = this.view.selected;
    const lanes = this.model.lanes;
    if (from === NONE) {
      const stream = lanes.find((lane) => lane.of === "stream" && lane.count > 0) ?? lanes.find((lane) => lane.count > 0);
      if (stream) this.reveal(stream.rows[0]!.id[Math.min(firstAfter(stream.rows[0]!.begin, this.view.from), stream.rows[0]!.id.length - 1)]!);
      return;
    }
    const rows = lanes.flatMap(shownRows);
    let r = rows.indexOf(lanes[this.model.lane[from]!]!.rows[this.model.row[from]!]!);
    if (r < 0) r = 0;
    if (down !== 0) {
      do r += down; while (rows[r] && rows[r]!.id.length === 0);
      const row = rows[r];
      if (row) this.reveal(row.id[Math.max(0, firstAfter(row.begin, this.model.begin[from]!) - 1)]!);
      return;
    }
    const row = rows[r]!;
    const at = firstAfter(row.begin, this.model.begin[from]!) - 1 + sideways;
    if (row.id[at] !== undefined) this.reveal(row.id[at]!);
  }

  // Whether the key was for the timeline.
  private key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const acts: Record<string, () => void> = {
      "+": () => this.zoom(1 / KEY_ZOOM), "=": () => this.zoom(1 / KEY_ZOOM), "w": () => this.zoom(1 / KEY_ZOOM),
      "-": () => this.zoom(KEY_ZOOM), "s": () => this.zoom(KEY_ZOOM), "a": () => this.pan(-KEY_PAN), "d": () => this.pan(KEY_PAN),
      "0": () => this.whole(), "f": () => this.fitSelection(), "/": () => this.input.focus(), "Enter": () => this.nextHit(event.shiftKey ? -1 : 1),
      "Escape": () => this.select(NONE), "ArrowLeft": () => this.step(-1, 0), "ArrowRight": () => this.step(1, 0),
      "ArrowUp": () => this.step(0, -1), "ArrowDown": () => this.step(0, 1),
    };
    const act = acts[event.key];
    act?.();
    return act !== undefined;
  }
}
