// Pictures of a report at two widths, light and dark, in slices of a screen, to look at.
// Usage: node screenshots.mjs REPORT.html FOLDER [WIDTH-THEME]
import {mkdirSync} from "node:fs";
import {basename, join} from "node:path";
import {openReport, withBrowser} from "./browser.mjs";

const [report, folder, only] = process.argv.slice(2);
const SLICE = 1300;
mkdirSync(folder, {recursive: true});
await withBrowser(async (context) => {
  for (const width of [1280, 480]) {
    for (const theme of ["light", "dark"]) {
      if (only && only !== `${width}-${theme}`) continue;
      const {page, complaints} = await openReport(context, report, {width, theme});
      await page.getByRole("button", {name: "show in the timeline"}).first().click({timeout: 1000}).catch(() => {});
      await page.waitForTimeout(300);
      const height = await page.evaluate(() => document.documentElement.scrollHeight);
      for (let y = 0, slice = 1; y < height; y += SLICE, ++slice) {
        const path = join(folder, `${basename(report, ".html")}-${width}-${theme}-${slice}.png`);
        await page.screenshot({path, fullPage: true, clip: {x: 0, y, width, height: Math.min(SLICE, height - y)}});
      }
      for (const complaint of complaints) console.log(`${width} ${theme}: ${complaint}`);
      await page.close();
    }
  }
});
