// The page: reads its two documents and makes its sections, the verdict first.
import {budgetSection} from "./budget";
import {readAnswer, readDrawing, type Answer} from "./data";
import {el, replace, visible, type Child} from "./dom";
import {setTheme, theme} from "./palette";
import {qualitySection} from "./quality";
import {ranksSection} from "./ranks";
import {rooflineSection} from "./roofline";
import {stepsSection} from "./steps";
import {innocentSection, suspectsSection} from "./suspects";
import {Timeline} from "./timeline/timeline";
import {verdictSection} from "./verdict";
import {whatIfSection} from "./what_if";

function header(answer: Answer): HTMLElement {
  const button = el("button", {type: "button", id: "theme"});
  const say = (): void => replace(button, theme() === "dark" ? "light" : "dark");
  button.setAttribute("aria-label", "switch between light and dark");
  button.addEventListener("click", () => { setTheme(theme() === "dark" ? "light" : "dark"); say(); });
  say();
  return el("header", {}, el("span", {class: "brand"}, `${answer.tool.name} ${answer.tool.version}`), button);
}

function navigation(sections: Child[]): HTMLElement {
  const links = sections.filter((s): s is HTMLElement => s instanceof HTMLElement && s.querySelector("h2") !== null)
    .map((s) => el("li", {}, el("a", {href: `#${s.id}`}, s.querySelector("h2")!.textContent)));
  return el("nav", {"aria-label": "sections"}, el("ul", {}, links));
}

function start(): void {
  const page = document.getElementById("page")!;
  const answer = readAnswer();
  const drawing = readDrawing();
  const timeline = drawing?.step ? new Timeline(answer, drawing) : null;
  const sections: Child[] = drawing ? [
    budgetSection(answer), stepsSection(answer, drawing), timeline?.element,
    suspectsSection(answer, drawing, (suspect) => timeline?.leadTo(suspect) ?? null), innocentSection(answer),
    whatIfSection(answer), rooflineSection(answer, drawing), ranksSection(answer),
  ] : [];
  sections.push(qualitySection(answer, drawing));
  document.title = visible(answer.headline ? `${answer.headline} – culprit` : "no verdict – culprit");
  replace(page, header(answer), el("main", {}, verdictSection(answer), navigation(sections), sections));
  // For measurements of the page itself.
  Object.assign(window, {culprit: {timeline}});
}

start();
