// Colours of owners, one pair each: on light and on dark ground. Kernels of one family are of one hue; idle time is grey.
// Colour only repeats what words say. Red is kept for what is accused.

export type Theme = "light" | "dark";

const OWNERS: Record<string, [string, string]> = {
  "attention": ["#7b4bc4", "#a98be6"], "gemm": ["#2f6fd0", "#6fa3f2"], "moe-gemm": ["#1f5aa8", "#4f8ae0"],
  "quantize": ["#b7791f", "#e0ac54"], "cast": ["#c2571a", "#ef8c4d"], "copy": ["#a8641b", "#d99a55"],
  "norm": ["#1c8478", "#4fbfb0"], "rope": ["#2a9183", "#6ccabd"], "activation": ["#3d8f57", "#76c98e"],
  "router": ["#5a7d1f", "#a3c65c"], "kv-store": ["#8a6d00", "#d3b84a"], "embedding": ["#6d5f8d", "#ab9cce"],
  "sampling": ["#8d4f86", "#cf8fc8"], "comm": ["#0d7f9e", "#4fc1de"], "comm-wait": ["#5d93a3", "#8fc3d2"],
  "memcpy": ["#8f6b4a", "#c7a27f"], "memset": ["#9b8468", "#cdb696"], "elementwise": ["#4d8aa5", "#86bdd6"],
  "reduce": ["#3f7f8f", "#7bb7c6"], "other-kernel": ["#66707c", "#a3adb9"], "graph": ["#55606e", "#8e9aa8"],
};
const IDLE: [string, string] = ["#c3c8cf", "#4a515b"];
const IDLES: Record<string, [string, string]> = {
  "idle-host-launch": ["#b4bcc6", "#5b6470"], "idle-host-sync": ["#cbd1d9", "#444c56"], "idle-host-work": ["#9da6b1", "#6d7783"],
  "idle-stall": ["#87919d", "#7f8a97"], "unexplained": ["#d5dae1", "#363d46"],
};
const HOST: Record<string, [string, string]> = {
  frame: ["#c9d6ea", "#34445e"], mark: ["#d8d2ee", "#453f66"], op: ["#bfe0d4", "#2b5548"], call: ["#f0d9b5", "#6a522c"],
};
const ACCUSED: [string, string] = ["#cf1f3a", "#ff5d6f"];

const pick = (pair: [string, string], theme: Theme): string => pair[theme === "dark" ? 1 : 0];

export const isIdle = (owner: string): boolean => owner.startsWith("idle-") || owner === "unexplained";
export const ownerColor = (owner: string, theme: Theme): string => pick(OWNERS[owner] ?? IDLES[owner] ?? IDLE, theme);
export const hostColor = (kind: string, theme: Theme): string => pick(HOST[kind] ?? IDLE, theme);
export const accusedColor = (theme: Theme): string => pick(ACCUSED, theme);

// Black or white, whichever is read better on `ground`: 4.5:1 at least, on any ground (WCAG 2, relative luminance).
export function inkOn(ground: string): string {
  const n = parseInt(ground.slice(1), 16);
  const [red, green, blue] = [n >> 16, (n >> 8) & 255, n & 255].map((c) => (c <= 10 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! > 0.179 ? "#000000" : "#ffffff";
}

// The theme that is shown, and calls for whoever draws it.
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners: (() => void)[] = [];
let chosen: Theme | null = null;

export const theme = (): Theme => chosen ?? (dark.matches ? "dark" : "light");
export function onTheme(redraw: () => void): void {
  listeners.push(redraw);
}
export function setTheme(next: Theme | null): void {
  chosen = next;
  if (next) document.documentElement.dataset["theme"] = next;
  else delete document.documentElement.dataset["theme"];
  for (const redraw of listeners) redraw();
}
dark.addEventListener("change", () => { if (!chosen) for (const redraw of listeners) redraw(); });
