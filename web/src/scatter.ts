// Kernels as circles on two logarithmic axes, their area the share of the step, with roofs drawn behind them.
import type uPlot from "uplot";
import {axis, chart, type Chart, type Ink} from "./chart";
import type {Kernel} from "./data";
import type {Child} from "./dom";
import {accusedColor, ownerColor, theme} from "./palette";

export interface Dot { index: number; kernel: Kernel; x: number; y: number; accused: boolean }
export interface Axis { label: string; range: [number, number]; format: (value: number) => string }

// Powers of ten inside a scale.
const powers: uPlot.Axis.Splits = (_plot, _axis, min, max) => Array.from({length: 25}, (_, i) => 10 ** (i - 6)).filter((p) => p >= min && p <= max);
// uPlot gives null for ticks that would stand too close.
const labels = (of: Axis): uPlot.Axis.Values => (_, ticks) => ticks.map((t: number | null) => (t === null ? null : of.format(t)));
const radius = (dot: Dot): number => 3 + 17 * Math.sqrt(Math.min(1, dot.kernel.share));

function drawDots(plot: uPlot, dots: Dot[]): void {
  const {ctx} = plot;
  ctx.save();
  for (const dot of dots) {
    ctx.beginPath();
    ctx.arc(plot.valToPos(dot.x, "x", true), plot.valToPos(dot.y, "y", true), radius(dot) * devicePixelRatio, 0, 2 * Math.PI);
    ctx.fillStyle = ctx.strokeStyle = dot.accused ? accusedColor(theme()) : ownerColor(dot.kernel.kind, theme());
    ctx.globalAlpha = 0.55;
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.lineWidth = devicePixelRatio;
    ctx.stroke();
  }
  ctx.restore();
}

function nearest(plot: uPlot, dots: Dot[]): Dot | undefined {
  const {left, top} = plot.cursor;
  let best: Dot | undefined, least = 30;
  for (const dot of dots) {
    const away = Math.hypot(plot.valToPos(dot.x, "x") - left!, plot.valToPos(dot.y, "y") - top!) - radius(dot);
    if (away < least) [best, least] = [dot, away];
  }
  return best;
}

// Lines in the units of the axes, clipped to the plot; a label stands where `at` says, in pixels from the plot's corner.
export class Backdrop {
  private readonly ratio = devicePixelRatio;
  constructor(private readonly plot: uPlot, private readonly colors: Ink) {}

  line(points: [number, number][], style: "roof" | "dotted"): void {
    const {ctx} = this.plot;
    ctx.strokeStyle = this.colors.text;
    ctx.globalAlpha = style === "roof" ? 1 : 0.5;
    ctx.lineWidth = (style === "roof" ? 2 : 1) * this.ratio;
    ctx.setLineDash(style === "roof" ? [] : [2 * this.ratio, 4 * this.ratio]);
    ctx.beginPath();
    points.forEach(([x, y], i) => {
      const place: [number, number] = [this.plot.valToPos(x, "x", true), this.plot.valToPos(y, "y", true)];
      if (i === 0) ctx.moveTo(...place);
      else ctx.lineTo(...place);
    });
    ctx.stroke();
    ctx.globalAlpha = 1;
  }
  // Beside a point, above or below it; not where it would run into the text before it.
  text(words: string, x: number, y: number, align: "left" | "right" = "left", below = false): void {
    const {ctx} = this.plot;
    ctx.font = `${11 * this.ratio}px system-ui, sans-serif`;
    const room = ctx.measureText(words).width;
    const left = this.plot.valToPos(x, "x", true) + (align === "right" ? -room - 8 * this.ratio : 8 * this.ratio);
    const base = this.plot.valToPos(y, "y", true) + (below ? 14 : -5) * this.ratio;
    if (left < this.end.left + 8 * this.ratio && Math.abs(base - this.end.base) < 1) return;
    this.end = {left: left + room, base};
    ctx.fillStyle = this.colors.text;
    ctx.textAlign = "left";
    ctx.fillText(words, left, base);
  }
  private end = {left: -Infinity, base: -Infinity};
}

// `dots` ascend in x.
export function scatter(label: string, dots: Dot[], x: Axis, y: Axis, backdrop: (paint: Backdrop) => void, describe: (dot: Dot) => Child): Chart {
  return chart(label, 340, (colors, say) => ({
    scales: {x: {time: false, distr: 3, range: x.range}, y: {distr: 3, range: y.range}},
    axes: [axis(colors, x.label, {size: 36, splits: powers, values: labels(x)}), axis(colors, "", {size: 96, splits: powers, values: labels(y)})],
    series: [{}, {paths: () => null, points: {show: false}}],
    cursor: {points: {show: false}, drag: {x: true, y: true}},
    hooks: {
      draw: [(plot) => {
        const {ctx, bbox} = plot;
        ctx.save();
        ctx.beginPath();
        ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
        ctx.clip();
        backdrop(new Backdrop(plot, colors));
        ctx.restore();
        drawDots(plot, dots);
      }],
      setCursor: [(plot) => {
        const dot = plot.cursor.left! >= 0 ? nearest(plot, dots) : undefined;
        if (dot) say(describe(dot));
        else say();
      }],
    },
  }), [dots.map((d) => d.x), dots.map((d) => d.y)]);
}
