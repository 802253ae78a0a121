// How near each kernel comes to the roof of the memory: bytes a call against bandwidth reached, both logarithmic, so that
// lines of equal time run diagonally. Kernels without known bytes are not on it. Areas are shares of the step.
import type uPlot from "uplot";
import {axis, chart, type Ink} from "./chart";
import type {Answer, Drawing, Kernel} from "./data";
import {el, name, section, table, type Child} from "./dom";
import {bytes, duration, figure, number, percent} from "./format";
import {accusedColor, ownerColor, theme} from "./palette";
import {share} from "./words";

interface Dot { index: number; kernel: Kernel; x: number; y: number; accused: boolean }

// Powers of ten inside a scale.
const powers: uPlot.Axis.Splits = (_plot, _axis, min, max) => Array.from({length: 25}, (_, i) => 10 ** (i - 6)).filter((p) => p >= min && p <= max);
const radius = (dot: Dot): number => 3 + 17 * Math.sqrt(Math.min(1, dot.kernel.share));
const rate = (gbps: number): string => `${bytes(Math.round(gbps * 1e9))}/s`;

function drawRoof(plot: uPlot, peak: number | null, colors: Ink): void {
  const {ctx, bbox} = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.fillStyle = ctx.strokeStyle = colors.text;
  ctx.textAlign = "left";
  ctx.lineWidth = ratio;
  ctx.setLineDash([2 * ratio, 4 * ratio]);
  for (const ns of [1e3, 1e4, 1e5, 1e6, 1e7]) {  // bytes = GB/s x ns
    const [low, high] = [plot.scales["y"]!.min!, plot.scales["y"]!.max!];
    ctx.globalAlpha = 0.5;
    ctx.beginPath();
    ctx.moveTo(plot.valToPos(low * ns, "x", true), plot.valToPos(low, "y", true));
    ctx.lineTo(plot.valToPos(high * ns, "x", true), plot.valToPos(high, "y", true));
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.fillText(duration(ns), plot.valToPos(low * ns, "x", true) + 8 * ratio, bbox.top + bbox.height - 6 * ratio);
  }
  ctx.setLineDash([]);
  if (peak !== null) {
    const y = plot.valToPos(peak, "y", true);
    ctx.lineWidth = 2 * ratio;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.fillText(`memory roof ${rate(peak)}`, bbox.left + 8 * ratio, y - 5 * ratio);
  }
  ctx.restore();
}

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

export function rooflineSection(answer: Answer, drawing: Drawing): Child {
  const accused = new Set(drawing.accused.flatMap((a) => a.kernels));
  const dots = answer.kernels.flatMap((kernel, index): Dot[] =>
    kernel.bytes && kernel.gbps ? [{index, kernel, x: kernel.bytes, y: kernel.gbps, accused: accused.has(index)}] : []);
  if (dots.length === 0) return null;
  dots.sort((a, b) => a.x - b.x);
  const peak = answer.device.peak_gbps;
  const [least, most] = [dots[0]!.x, dots[dots.length - 1]!.x];
  const low = Math.min(...dots.map((d) => d.y)) / 3, high = Math.max(peak ?? 0, ...dots.map((d) => d.y)) * 2.5;
  const label = `bandwidth reached by ${dots.length} kernels over the bytes of a call` + (peak ? `; memory roof ${rate(peak)}` : "");
  const plot = chart(label, 340, (colors, say) => ({
    scales: {x: {time: false, distr: 3, range: [least / 3, most * 3]}, y: {distr: 3, range: [low, high]}},
    axes: [axis(colors, "bytes a call", {size: 36, splits: powers, values: (_, ticks) => ticks.map((t) => bytes(t))}),
      axis(colors, "", {size: 68, splits: powers, values: (_, ticks) => ticks.map(rate)})],
    series: [{}, {paths: () => null, points: {show: false}}],
    cursor: {points: {show: false}, drag: {x: true, y: true}},
    hooks: {
      draw: [(plot) => { drawRoof(plot, peak, colors); drawDots(plot, dots); }],
      setCursor: [(plot) => {
        const dot = plot.cursor.left! >= 0 ? nearest(plot, dots) : undefined;
        if (!dot) return say();
        const k = dot.kernel;
        say(name(k.short), `: ${bytes(dot.x)} a call in ${duration(k.avg_ns)}, ${number(dot.y)} GB/s`, k.of_peak !== null && `, ${percent(k.of_peak)} of its roof`);
      }],
    },
  }), [dots.map((d) => d.x), dots.map((d) => d.y)]);
  const byTime = [...dots].sort((a, b) => a.index - b.index);
  return section("roofline", "How near kernels come to the roof",
    el("p", {class: "lead"}, "Each circle is a kernel, its area its share of the step. Dotted lines join calls of equal time. Drag to zoom, double-click to go back.",
      dots.length < answer.kernels.length && ` ${answer.kernels.length - dots.length} kernels are not on it: the bytes of their calls are not known.`),
    plot.element,
    el("details", {}, el("summary", {}, "the same as a table"), table("bandwidth by kernel",
      [{title: "kernel"}, {title: "kind"}, {title: "share", number: true}, {title: "bytes a call", number: true}, {title: "time", number: true}, {title: "GB/s", number: true}, {title: "of its roof", number: true}, {title: "bound"}],
      byTime.map(({kernel: k, index}) => [name(k.short), k.kind, share(k.share, `kernels[${index}].share`), figure(k.bytes, bytes, `kernels[${index}].bytes`),
        figure(k.avg_ns, duration, `kernels[${index}].avg_ns`), figure(k.gbps, number, `kernels[${index}].gbps`), figure(k.of_peak, percent, `kernels[${index}].of_peak`), k.regime]),
      byTime.map((d) => (d.accused ? "accused" : undefined)))));
}
