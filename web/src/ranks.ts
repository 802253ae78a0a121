// The ranks of the input side by side: each one's budget as a bar on one scale.
import type {Answer, RankFigures} from "./data";
import {stackedBar} from "./budget";
import {section, table, type Child} from "./dom";
import {count, duration, figure} from "./format";

function nameOf(rank: RankFigures): string {
  if (rank.label) return rank.label;
  return rank.process ? `process ${rank.process}, device ${rank.device}` : `device ${rank.device}`;
}

export function ranksSection(answer: Answer): Child {
  if (answer.ranks.length < 2) return null;
  const whole = Math.max(1, ...answer.ranks.map((rank) => rank.mean_ns ?? 0));
  return section("ranks", "Ranks", table("ranks",
    [{title: "rank"}, {title: "per step", number: true}, {title: "works", number: true}, {title: "communicates", number: true}, {title: "kernels", number: true}, {title: "where its step goes"}],
    answer.ranks.map((rank, i) => [
      [nameOf(rank), rank.headline && " (this answer)"],
      figure(rank.mean_ns, duration, `ranks[${i}].mean_ns`), figure(rank.work_ns_per_step, duration, `ranks[${i}].work_ns_per_step`),
      figure(rank.comm_ns_per_step, duration, `ranks[${i}].comm_ns_per_step`), figure(rank.kernels, count, `ranks[${i}].kernels`),
      rank.refused ?? stackedBar(rank.budget, whole, `owners of the step of ${nameOf(rank)}`),
    ]), answer.ranks.map((rank) => (rank.headline ? "chosen" : undefined))));
}
