// One Chromium for a test, with a profile of its own and nothing that talks to anybody; and pages in it that note every
// request and every complaint.
import {existsSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {pathToFileURL} from "node:url";
import {chromium} from "playwright-core";

export const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
export const SKIPPED = 77;

export async function withBrowser(use) {
  const profile = mkdtempSync(join(tmpdir(), "culprit-web-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM, headless: true, bypassCSP: false,
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
      "--disable-sync"],
  });
  try {
    return await use(context);
  } finally {
    await context.close();
    rmSync(profile, {recursive: true, force: true});
  }
}

// The page of a report. `complaints`: what left the file, what the console says, what the policy refused.
export async function openReport(context, file, {width = 1280, height = 900, theme = "light"} = {}) {
  const page = await context.newPage();
  const complaints = [];
  const url = pathToFileURL(file).href;
  page.on("request", (request) => { if (request.url().split("#")[0] !== url) complaints.push(`asks ${request.url()}`); });
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.setViewportSize({width, height});
  await page.emulateMedia({colorScheme: theme});
  await page.goto(url);
  await page.waitForSelector("main");
  return {page, complaints};
}
