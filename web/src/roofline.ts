// How near each kernel comes to its roof. Matrix multiplications with recorded shapes stand under both roofs: operations a
// byte against operations a second, memory's slope and arithmetic's ceiling. All kernels with known bytes stand under
// memory's: bytes a call against bandwidth, with lines of equal time that show what latency costs.
import type {Answer, Drawing, Kernel} from "./data";
import {el, name, section, table, type Child} from "./dom";
import {bytes, duration, figure, number, percent} from "./format";
import {scatter, type Dot} from "./scatter";
import {share} from "./words";

const rate = (gbps: number): string => `${bytes(Math.round(gbps * 1e9))}/s`;
const ofRoof = (kernel: Kernel): Child => kernel.of_peak !== null && `, ${percent(kernel.of_peak)} of its roof`;
const reach = (values: number[], above: number[]): [number, number] => [Math.min(...values) / 3, Math.max(...values, ...above) * 2.5];

function dotsOf(answer: Answer, drawing: Drawing, place: (kernel: Kernel) => [number, number] | null): Dot[] {
  const accused = new Set(drawing.accused.flatMap((a) => a.kernels));
  return answer.kernels.flatMap((kernel, index): Dot[] => {
    const at = place(kernel);
    return at ? [{index, kernel, x: at[0], y: at[1], accused: accused.has(index)}] : [];
  }).sort((a, b) => a.x - b.x);
}

function bandwidthPlot(answer: Answer, dots: Dot[]): HTMLElement {
  const peak = answer.device.peak_gbps;
  const x = reach(dots.map((d) => d.x), []), y = reach(dots.map((d) => d.y), peak ? [peak] : []);
  const label = `bandwidth reached by ${dots.length} kernels over the bytes of a call` + (peak ? `; memory roof ${rate(peak)}` : "");
  return scatter(label, dots, {label: "bytes a call", range: x, format: bytes}, {label: "bandwidth", range: y, format: rate}, (paint) => {
    for (const ns of [1e3, 1e4, 1e5, 1e6, 1e7]) {  // bytes = GB/s x ns
      paint.line([[y[0] * ns, y[0]], [y[1] * ns, y[1]]], "dotted");
      if (y[0] * ns > x[0]) paint.text(duration(ns), y[0] * ns, y[0]);
    }
    if (peak) {
      paint.line([[x[0], peak], [x[1], peak]], "roof");
      paint.text(`memory roof ${rate(peak)}`, x[0], peak);
    }
  }, ({kernel, x: moved, y: reached}) => [name(kernel.short), `: ${bytes(moved)} a call in ${duration(kernel.avg_ns)}, ${number(reached)} GB/s`, ofRoof(kernel)]).element;
}

// In TFLOP/s: operations a byte x GB/s / 1000.
function arithmeticPlot(answer: Answer, dots: Dot[]): HTMLElement {
  const {peak_gbps: memory, half_tflops: half, fp8_tflops: fp8} = answer.device;
  const ceilings = ([["16-bit", half], ["8-bit", fp8]] as const).flatMap(([what, tflops]) => (tflops ? [{what, tflops}] : []));
  const highest = Math.max(0, ...ceilings.map((c) => c.tflops));
  const x = reach(dots.map((d) => d.x), memory && highest ? [highest * 1000 / memory] : []), y = reach(dots.map((d) => d.y), ceilings.map((c) => c.tflops));
  return scatter(`${dots.length} matrix multiplications under the roofs of memory and arithmetic`, dots,
    {label: "operations a byte", range: x, format: number}, {label: "speed", range: y, format: (t) => `${number(t)} TFLOP/s`}, (paint) => {
      if (memory) {
        const knee = highest ? highest * 1000 / memory : x[1];
        paint.line([[x[0], x[0] * memory / 1000], [knee, knee * memory / 1000]], "roof");
        const middle = Math.sqrt(Math.max(x[0], y[0] * 1000 / memory) * knee);
        paint.text(`${rate(memory)} memory`, middle, middle * memory / 1000, "right");
      }
      for (const {what, tflops} of ceilings) {
        paint.line([[memory ? tflops * 1000 / memory : x[0], tflops], [x[1], tflops]], "roof");
        paint.text(`${what} ${number(tflops)} TFLOP/s`, x[1], tflops, "right", tflops < highest);
      }
    }, ({kernel, x: intensity, y: speed}) =>
      [name(kernel.short), `: ${number(intensity)} operations a byte, ${number(speed)} TFLOP/s, ${duration(kernel.avg_ns)} a call`, ofRoof(kernel)]).element;
}

export function rooflineSection(answer: Answer, drawing: Drawing): Child {
  const dots = dotsOf(answer, drawing, (k) => (k.bytes && k.gbps ? [k.bytes, k.gbps] : null));
  if (dots.length === 0) return null;
  const products = dotsOf(answer, drawing, (k) => (k.flops && k.bytes && k.avg_ns ? [k.flops / k.bytes, k.flops / k.avg_ns / 1000] : null));
  const off = answer.kernels.length - dots.length;
  const byTime = [...dots].sort((a, b) => a.index - b.index);
  const cells = ({kernel: k, index}: Dot): Child[] => {
    const path = `kernels[${index}]`;
    return [name(k.short), k.kind, share(k.share, `${path}.share`), figure(k.bytes, bytes, `${path}.bytes`), figure(k.avg_ns, duration, `${path}.avg_ns`),
      figure(k.gbps, number, `${path}.gbps`), figure(k.of_peak, percent, `${path}.of_peak`), k.regime];
  };
  return section("roofline", "How near kernels come to the roof",
    el("p", {class: "lead"}, "Each circle is a kernel, its area its share of the step. Dotted lines join calls of equal time. Drag to zoom, double-click to go back.",
      off > 0 && ` ${off} kernels are not on it: the bytes of their calls are not known.`),
    bandwidthPlot(answer, dots),
    products.length > 0 && [el("h3", {}, "Matrix multiplications under both roofs"), arithmeticPlot(answer, products)],
    el("details", {}, el("summary", {}, "the same as a table"), table("bandwidth by kernel",
      [{title: "kernel"}, {title: "kind"}, {title: "share", number: true}, {title: "bytes a call", number: true}, {title: "time", number: true},
        {title: "GB/s", number: true}, {title: "of its roof", number: true}, {title: "bound"}],
      byTime.map(cells), byTime.map((d) => (d.accused ? "accused" : undefined)))));
}
