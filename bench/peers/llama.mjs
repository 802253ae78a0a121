// llama.cpp, by the binary that node-llama-cpp ships, as a program that the comparisons run.
//
//   node llama.mjs logits MODEL TOKENS FILE           the scores behind each token, one by one: float32 rows to FILE
//   node llama.mjs decode MODEL THREADS PROMPT STEPS  nanoseconds of each decode step behind a prompt, as JSON
import {writeFileSync} from "node:fs";
import {getLlama} from "node-llama-cpp";

const [command, path, ...rest] = process.argv.slice(2);
// Only what npm installed: no build, no download, no GPU.
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: 0, logLevel: "error"});
const model = await llama.loadModel({modelPath: path, gpuLayers: 0});

async function sequence(positions, threads) {
    // With room to spare: a full context is shifted before its last token is scored.
    const context = await model.createContext({
        contextSize: positions + 256, sequences: 1, threads: {ideal: threads, min: threads}});
    return context.getSequence();
}

async function logits(tokens, file) {
    const engine = await sequence(tokens.length, 1);
    const rows = [];
    for (const token of tokens) {
        const [result] = await engine.controlledEvaluate([[token, {generateNext: {logits: true}}]]);
        const row = new Float32Array(result.next.logits.size);
        for (const [id, score] of result.next.logits) row[id] = score;
        rows.push(Buffer.from(row.buffer));
    }
    writeFileSync(file, Buffer.concat(rows));
}

async function decode(threads, prompt, steps) {
    const engine = await sequence(prompt + steps, threads);
    const tokens = Array.from({length: prompt}, (_, i) => 300 + 7 * i % 1000);
    const times = [];
    let last = process.hrtime.bigint();
    for await (const _ of engine.evaluate(tokens, {temperature: 0, yieldEogToken: true})) {
        const now = process.hrtime.bigint();
        times.push(Number(now - last));
        last = now;
        if (times.length > steps) break;  // the first holds the prompt
    }
    console.log(JSON.stringify({steps: times.slice(1)}));
}

const number = text => Number.parseInt(text, 10);
if (command === "logits") await logits(rest[0].split(",").map(number), rest[1]);
else if (command === "decode") await decode(...rest.map(number));
else throw new Error(`unknown command ${command}`);
process.exit(0);  // without waiting for the garbage collector's threads
