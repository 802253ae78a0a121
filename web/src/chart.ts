// A uPlot chart that fits its place, follows the theme and says what is under the pointer in a line of text.
import uPlot from "uplot";
import {el, replace, type Child} from "./dom";
import {onTheme, theme, type Theme} from "./palette";

export interface Ink { text: string; grid: string; plain: string; dim: string; accused: string }

export function ink(of: Theme): Ink {
  return of === "dark"
    ? {text: "#c4cad3", grid: "#2f353d", plain: "#6fa3f2", dim: "#59616c", accused: "#ff5d6f"}
    : {text: "#47505b", grid: "#e2e5ea", plain: "#2f6fd0", dim: "#b3bac3", accused: "#cf1f3a"};
}

export const axis = (colors: Ink, label: string, more: uPlot.Axis = {}): uPlot.Axis => ({
  stroke: colors.text, grid: {stroke: colors.grid, width: 1}, ticks: {stroke: colors.grid, width: 1},
  font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", label, labelSize: 20, ...more,
});

export interface Chart { element: HTMLElement; say: (...text: Child[]) => void }

// `options` and `data` are made anew whenever the theme changes.
export function chart(label: string, height: number, options: (colors: Ink, say: Chart["say"]) => Omit<uPlot.Options, "width" | "height">,
  data: uPlot.AlignedData): Chart {
  const place = el("div", {class: "plot", role: "img", "aria-label": label});
  const line = el("p", {class: "readout"}, "\u00a0");
  const say = (...text: Child[]): void => replace(line, text.length > 0 ? text : "\u00a0");
  let plot: uPlot | null = null;
  const draw = (): void => {
    plot?.destroy();
    plot = new uPlot({...options(ink(theme()), say), width: Math.max(240, place.clientWidth), height, legend: {show: false}}, data, place);
  };
  new ResizeObserver(() => {
    const width = Math.max(240, place.clientWidth);
    if (!plot) draw();
    else if (width !== plot.width) plot.setSize({width, height});
  }).observe(place);
  onTheme(() => { if (plot) draw(); });
  return {element: el("div", {}, place, line), say};
}
