// Elements are made here and nowhere else, and what they say is always text: names in a trace are whatever somebody wrote
// into it. Characters that hide, or that turn the text around them, are shown by their number.

// Controls, invisible and bidirectional format characters, tags, private separators, and halves of surrogate pairs.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;

export function visible(text: string): string {
  return text.replace(HIDDEN, (c) => `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

export type Child = Node | string | number | null | undefined | false | Child[];
export interface Attributes {
  class?: string; id?: string; title?: string; role?: string; for?: string; href?: string; type?: string; value?: string;
  scope?: string; tabindex?: number; hidden?: boolean; open?: boolean; placeholder?: string; colspan?: number;
  [aria: `aria-${string}`]: string | undefined;
  [data: `data-${string}`]: string | undefined;
}

function append(parent: Node, child: Child): void {
  if (Array.isArray(child)) {
    for (const c of child) append(parent, c);
  } else if (child instanceof Node) {
    parent.appendChild(child);
  } else if (child !== null && child !== undefined && child !== false) {
    parent.appendChild(document.createTextNode(visible(String(child))));
  }
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(key, value === true ? "" : visible(String(value)));
  }
  append(element, children);
  return element;
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

// A name from the trace: its own direction and font, and a place to break.
export const name = (text: string): HTMLElement => el("bdi", {class: "name"}, text);

export interface Column { title: string; number?: boolean }

export function table(caption: string, columns: Column[], rows: Child[][], classes: (string | undefined)[] = []): HTMLElement {
  const cell = (child: Child, i: number): HTMLElement => i === 0
    ? el("th", {scope: "row"}, child)
    : el("td", columns[i]!.number ? {class: "number"} : {}, child);
  return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
    el("table", {},
      el("caption", {class: "unseen"}, caption),
      el("thead", {}, el("tr", {}, columns.map((c) => el("th", {scope: "col", class: c.number ? "number" : undefined}, c.title)))),
      el("tbody", {}, rows.map((row, r) => el("tr", {class: classes[r]}, row.map(cell))))));
}

const isNothing = (child: Child): boolean =>
  child === null || child === undefined || child === false || (Array.isArray(child) && child.every(isNothing));

// A label and what it says, for a list of them; nothing where it says nothing.
export const line = (label: string, ...value: Child[]): Child => (isNothing(value) ? null : [el("dt", {}, label), el("dd", {}, value)]);

export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return el("section", {id, "aria-labelledby": `${id}-title`}, el("h2", {id: `${id}-title`}, title), children);
}
