// Bundles the page of culprit --html and writes it as C++: kPageHead, the data's place, kPageTail.
// Script and style stand in the page by their hashes, which its security policy allows, and nothing else.
// Usage: node build.mjs OUT.cc
import {createHash} from "node:crypto";
import {readFileSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {build} from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const DATA = "<!-- data -->";

async function bundle(entry) {
  const built = await build({
    entryPoints: [join(here, entry)], bundle: true, minify: true, write: false, format: "iife", target: "es2022",
    legalComments: "none", logLevel: "warning",
  });
  return built.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

// Adjacent literals: no compiler has to take one of 100 kB.
function literal(text) {
  const pieces = text.match(/[^]{1,12000}/g) ?? [""];
  if (text.includes(')~~"')) throw new Error("the page holds the end of a raw string");
  return pieces.map((piece) => `R"~~(${piece})~~"`).join("\n");
}

const licence = readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8").trim();
const script = `/* with uPlot:\n${licence}\n*/\n${await bundle("src/main.ts")}`;
const style = await bundle("src/style.css");
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'; ` +
  "require-trusted-types-for 'script'; trusted-types 'none'";
const page = readFileSync(join(here, "page.html"), "utf8")
  .replace("{{policy}}", () => policy).replace("{{style}}", () => style).replace("{{script}}", () => script);
const [head, tail] = page.split(DATA);

writeFileSync(process.argv[2], `// Made by web/build.mjs.
#include <string_view>
namespace culprit::report {
extern const std::string_view kPageHead, kPageTail;
const std::string_view kPageHead = ${literal(head)};
const std::string_view kPageTail = ${literal(tail)};
}  // namespace culprit::report
`);
