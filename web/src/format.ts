// Figures as people read them, by the rules of src/base/text_numbers.cc: three significant digits, one unit. A figure of
// the answer is shown as <data> with its exact value and its path in the answer, so that both can be looked up.
import type {Maybe} from "./data";
import {el} from "./dom";

const TIME_UNITS: [string, number][] = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const BYTE_UNITS: [string, number][] = [["B", 1], ["kB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]];

const grouped = (digits: string): string => digits.replace(/\B(?=(\d{3})+$)/g, ",");

// n / size to `decimals` places, half away from zero. n is an integer below 2^53.
function scaled(n: number, size: number, decimals: number): string {
  const power = 10 ** decimals;
  const rest = n % size;
  const value = (n - rest) / size * power + Math.floor((rest * power + Math.floor(size / 2)) / size);
  const whole = Math.floor(value / power);
  return grouped(String(whole)) + (decimals > 0 ? "." + String(value % power).padStart(decimals, "0") : "");
}

function inBestUnit(n: number, units: [string, number][]): string {
  const sign = n < 0 ? "-" : "";
  const magnitude = Math.abs(n);
  for (const [unit, size] of units) {
    for (let decimals = size === 1 ? 0 : 2; decimals >= 0; --decimals) {
      const text = scaled(magnitude, size, decimals);
      if (Number(text.replaceAll(",", "")) * 10 ** decimals < 999.5) return `${sign}${text} ${unit}`;
    }
  }
  const [unit, size] = units[units.length - 1]!;
  return `${sign}${scaled(magnitude, size, 0)} ${unit}`;
}

export const duration = (ns: number): string => inBestUnit(ns, TIME_UNITS);
export const bytes = (n: number): string => inBestUnit(n, BYTE_UNITS);
export const count = (n: number): string => (n < 0 ? "-" : "") + grouped(String(Math.abs(Math.round(n))));

export function fixed(x: number, decimals: number): string {
  const [whole, rest] = Math.abs(x).toFixed(decimals).split(".");
  return (x < 0 ? "-" : "") + grouped(whole!) + (rest ? "." + rest : "");
}
export function number(x: number): string {
  const size = Math.abs(x);
  if (size === 0) return "0";
  return fixed(x, Math.min(20, Math.max(0, 2 - Math.floor(Math.log10(size)))));
}
export const amount = (x: number): string => (Math.abs(x - Math.round(x)) < 1e-6 ? count(x) : number(x));

export function percent(share: number): string {
  const hundredths = share * 100, size = Math.abs(hundredths);
  if (size > 0 && size < 0.001) return "< 0.001 %";
  if (size === 0 || size >= 0.995) return fixed(hundredths, 1) + " %";
  const digits = fixed(hundredths, size >= 0.0995 ? 2 : size >= 0.00995 ? 3 : 4);
  return digits.replace(/0+$/, "") + " %";
}

type Show = (x: number) => string;
const EXACT: Map<Show, string> = new Map([[duration, " ns"], [bytes, " B"]]);

// `path` in the answer: "suspects[0].gain.step_ns_now". A dash where it is not known.
export function figure(value: Maybe<number>, show: Show, path: string): HTMLElement {
  if (value === null) return el("span", {class: "unknown", title: "not known"}, "–");
  const unit = EXACT.get(show);
  return el("data", {value: String(value), "data-path": path, title: unit ? count(value) + unit : undefined}, show(value));
}

export const UNITS: Record<string, Show> = {ns: duration, byte: bytes};
