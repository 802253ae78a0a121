// Opens reports of culprit in Chromium and uses them: figures against --json, pointer, wheel, keys and search, both
// themes, hostile names, and that nothing asks a network. Usage: node report_test.mjs FOLDER, with NAME.html and NAME.json
// for each report; glm5, hostile, ranks, stalled, large and empty are looked at more closely where they are there.
import assert from "node:assert/strict";
import {existsSync, readdirSync, readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {join} from "node:path";
import {openReport, withBrowser} from "./browser.mjs";

const folder = process.argv[2];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const names = readdirSync(folder).filter((file) => file.endsWith(".html")).map((file) => file.slice(0, -5));
const UNITS = {ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, "%": 0.01};

const at = (answer, path) => path.match(/[^.[\]]+/g).reduce((value, key) => value[key], answer);

// Every figure has the value of --json, and its text says that value to three digits.
async function checkFigures(page, answer, least) {
  const figures = await page.$$eval("data[data-path]", (all) => all.map((d) => [d.dataset.path, d.value, d.textContent]));
  assert.ok(figures.length >= least, `${figures.length} figures`);
  for (const [path, value, text] of figures) {
    const exact = at(answer, path);
    assert.equal(Number(value), exact, `${path}: ${value}`);
    const [, digits, unit] = text.match(/^(-?[\d,.]+)(?: (\S+))?$/) ?? [];
    if (text === "< 0.001 %") continue;
    assert.ok(digits, `${path} is shown as "${text}"`);
    const shown = Number(digits.replaceAll(",", "")) * (unit ? UNITS[unit] : 1);
    const allowed = unit === "%" ? Math.max(0.0006, 0.006 * Math.abs(exact)) : 0.0051 * Math.abs(exact);
    assert.ok(Math.abs(shown - exact) <= allowed, `${path}: ${exact} is shown as "${text}"`);
  }
  return figures.length;
}

async function checkAxe(page, name, theme) {
  await page.evaluate(axe);
  const {violations} = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ["violations"]}));
  const grave = violations.filter((v) => ["serious", "critical"].includes(v.impact));
  const told = grave.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join("; ")}`);
  assert.deepEqual(told, [], `${name} ${theme}`);
}

async function checkPhone(page, name) {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wider <= 0, `${name}: the page is ${wider} pixels wider than a phone`);
}

const view = (page) => page.evaluate(() => {
  const {from, to, selected} = globalThis.culprit.timeline.view;
  return {from, to, length: to - from, selected};
});
const label = (page) => page.evaluate(() => {
  const {model, view: {selected}} = globalThis.culprit.timeline;
  return selected < 0 ? null : model.label(selected);
});
const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

async function checkTimeline(page) {
  const canvas = page.locator("#timeline canvas");
  await page.getByRole("button", {name: "show in the timeline"}).click();
  const details = page.locator(".details");
  for (const words of ["whole-pool-cast", "grid 557,496", "856 MB", "GB/s in this call", "aten::_to_copy", "flashinfer_mla_backend.py:639", "cudaLaunchKernel"])
    assert.ok((await details.textContent()).includes(words), `the details lack "${words}"`);

  const hover = await page.evaluate(() => {
    const {model, view} = globalThis.culprit.timeline;
    const id = model.ofSuspect(0)[0];
    return {x: view.x(model.begin[id] + model.length[id] / 2), y: view.yOf(id) + 8};
  });
  await page.getByRole("button", {name: "show the whole step"}).click();
  await canvas.hover({position: hover});
  const readout = await page.locator("#timeline .readout").textContent();
  for (const words of ["copy -> bf16: 8", "grid 557,496", "856 MB at", "GB/s", "aten::copy_", "flashinfer_mla_backend.py:639", "stream 7"])
    assert.ok(readout.includes(words), `what is under the pointer lacks "${words}": ${readout}`);

  const whole = await view(page);
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 70);
  await page.evaluate(() => document.activeElement.blur());
  await page.mouse.wheel(0, 1);
  await settle(page);
  assert.equal((await view(page)).length, whole.length, "a wheel that scrolls the page zooms nothing");
  await canvas.focus();
  await page.mouse.wheel(0, -400);
  await settle(page);
  const near = await view(page);
  assert.ok(near.length < 0.8 * whole.length, "the wheel zooms in");
  const under = (v) => v.from + 0.3 * v.length;
  assert.ok(Math.abs(under(near) - under(whole)) < 0.01 * whole.length, "what is under the pointer stays there");

  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 70, {steps: 4});
  await page.mouse.up();
  await settle(page);
  const dragged = await view(page);
  assert.ok(Math.abs(near.from - dragged.from - 0.2 * near.length) < 0.02 * near.length, "dragging moves the view with the pointer");

  await canvas.press("0");
  await settle(page);
  assert.equal((await view(page)).length, whole.length, "0 shows the whole step");
  for (const key of ["+", "+", "a", "d", "-"]) await canvas.press(key);
  await settle(page);
  assert.ok((await view(page)).length < whole.length, "keys zoom");

  const before = await view(page);
  await canvas.press("ArrowRight");
  assert.notEqual((await view(page)).selected, before.selected, "an arrow goes to the next event");
  await canvas.press("ArrowLeft");
  assert.equal((await view(page)).selected, before.selected, "and the other one back");
  await canvas.press("ArrowDown");
  assert.notEqual((await view(page)).selected, before.selected, "down goes to the next row");

  await canvas.press("/");
  await page.keyboard.type("batchmla");
  assert.equal(await page.locator("#timeline output").textContent(), "78 found");
  await page.keyboard.press("Enter");
  assert.match(await label(page), /BatchMLA/i);
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#timeline output").textContent(), "2 of 78");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#timeline output").textContent(), "");

  await page.getByRole("button", {name: "show the whole step"}).click();
  const clicked = await page.evaluate(() => {  // the middle of the first cast of the step
    const {model, view} = globalThis.culprit.timeline;
    const id = model.ofSuspect(0)[0];
    return {id, x: view.x(model.begin[id] + model.length[id] / 2), y: view.yOf(id) + 8};
  });
  await canvas.click({position: {x: clicked.x, y: clicked.y}});
  assert.equal((await view(page)).selected, clicked.id, "a click selects what lies under it");
}

// What is drawn: the share of red pixels in the stream's row is that of the casts' time.
async function checkPicture(page, answer) {
  await page.getByRole("button", {name: "show the whole step"}).click();
  await settle(page);
  const share = await page.evaluate(() => {
    const {model, view} = globalThis.culprit.timeline;
    const id = model.ofSuspect(0)[0];
    const canvas = document.querySelector("#timeline canvas");
    const ratio = canvas.width / canvas.clientWidth;
    const y = Math.round((view.yOf(id) + 20) * ratio);
    const {data} = canvas.getContext("2d").getImageData(0, y, canvas.width, 1);
    let red = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i] > 180 && data[i + 1] < 110 && data[i + 2] < 130) ++red;
    return red / canvas.width;
  });
  assert.ok(Math.abs(share - answer.suspects[0].share) < 0.12, `red is ${share} of the stream's row, the cast ${answer.suspects[0].share} of the step`);
}

async function checkTheme(page) {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await ground();
  await page.locator("#theme").click();
  assert.notEqual(await ground(), before, "the switch changes the theme");
  await page.locator("#theme").click();
  assert.equal(await ground(), before);
}

async function checkHostile(page) {
  page.on("dialog", () => assert.fail("a name of the trace has run"));
  await page.locator("#timeline canvas").press("ArrowRight");
  const {text, title, images, scripts, attributes} = await page.evaluate(() => ({
    text: document.getElementById("page").textContent, title: document.title,
    images: document.querySelectorAll("img, iframe, object, #page script").length, scripts: document.scripts.length,
    attributes: [...document.querySelectorAll("#page *")].flatMap((e) => [...e.attributes].map((a) => a.value)).join("\n"),
  }));
  assert.ok(text.includes("<img src=x onerror=alert(1)></script><script>alert(2)</script><!-- &lt;"), "hostile text is shown as it is");
  for (const shown of ["⟨U+202E⟩", "⟨U+0007⟩", "⟨U+001B⟩", "⟨U+200B⟩", "⟨U+2028⟩", "⟨U+E0041⟩"]) assert.ok(text.includes(shown), `${shown} is not shown`);
  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u;
  for (const [what, value] of Object.entries({text, title, attributes})) assert.ok(!hidden.test(value), `the ${what} hides something`);
  assert.equal(images, 0);
  assert.equal(scripts, 3, "two documents and the page's own script");
  assert.equal(await page.evaluate(() => Object.getPrototypeOf({}).polluted), undefined);
}

async function checkLarge(context, name) {
  const {page, complaints} = await openReport(context, join(folder, `${name}.html`));
  const measured = await page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    await frame();
    const {timeline} = globalThis.culprit;
    const [navigation] = performance.getEntriesByType("navigation");
    const draws = [], steps = [];
    for (let i = 0; i < 40; ++i) {
      const begun = performance.now();
      timeline.zoom(i < 20 ? 0.8 : 1.25);
      await frame();
      await frame();
      draws.push(timeline.view.drawMs);
      steps.push(performance.now() - begun);
    }
    const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
    const begun = performance.now();
    const found = timeline.model.search("a").length;
    return {events: timeline.model.size, load: navigation.loadEventEnd, draw: middle(draws), slowest: Math.max(...draws), step: middle(steps),
      search: performance.now() - begun, found};
  });
  const ms = (x) => `${x.toFixed(1)} ms`;
  console.log(`${name}: ${measured.events} events; loaded in ${ms(measured.load)}; a zoom step draws in ${ms(measured.draw)} (slowest ${ms(measured.slowest)}), ` +
    `shown after ${ms(measured.step)}; a search takes ${ms(measured.search)} for ${measured.found} matches`);
  assert.ok(measured.events >= 50_000, "the large report is large");
  assert.ok(measured.draw < 250 && measured.load < 20_000, "an order of magnitude too slow");
  assert.deepEqual(complaints, []);
  await page.close();
}

const CLOSER = {
  glm5: async (page, answer) => {
    assert.equal(await page.locator("h1").textContent(), answer.headline);
    for (const id of ["budget", "steps", "timeline", "suspects", "innocent", "what-if", "roofline", "quality"])
      assert.equal(await page.locator(`section#${id}`).count(), 1, `the section ${id} is missing`);
    await checkTimeline(page);
    await checkPicture(page, answer);
    await checkTheme(page);
  },
  hostile: (page) => checkHostile(page),
  ranks: async (page, answer) => assert.equal(await page.locator("#ranks tbody tr").count(), answer.ranks.length),
  stalled: async (page) => assert.equal(await page.locator("#steps tbody tr").count(), 1),
  empty: async (page) => {
    assert.equal(await page.locator("h1").textContent(), "No verdict");
    assert.equal(await page.locator("#timeline").count(), 0);
  },
};

await withBrowser(async (context) => {
  for (const name of names) {
    const answer = JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
    let figures = 0;
    for (const theme of ["light", "dark"]) {
      const {page, complaints} = await openReport(context, join(folder, `${name}.html`), {theme});
      if (theme === "light") {
        figures = await checkFigures(page, answer, answer.quality.usable ? 20 : 0);
        await CLOSER[name]?.(page, answer);
      }
      await checkAxe(page, name, theme);
      await page.setViewportSize({width: 480, height: 900});
      await settle(page);
      await checkPhone(page, name);
      assert.deepEqual(complaints, [], name);
      await page.close();
    }
    console.log(`${name}: ${figures} figures are those of --json; nothing left the page; axe finds nothing serious`);
  }
  if (existsSync(join(folder, "large", "large.html"))) await checkLarge(context, "large/large");
});
