// ---- page of a run
const listOf = (pairs) => el("dl", { class: "facts" }, ...pairs.filter(([, v]) => v !== "" && v !== "–" && v !== null && v !== undefined)
  .flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v instanceof Node ? v : String(v))]));
const card = (title, ...content) => el("figure", { class: "card" }, el("figcaption", {}, el("h3", {}, title)), ...content);
const keys = (...entries) => el("ul", { class: "legend" }, ...entries.map(([name, mark]) => el("li", {}, mark, name)));
const swatch = (style) => el("svg", { class: `key s${style}`, viewBox: "-7 -7 14 14", "aria-hidden": "true" }, el("rect", { class: "bar", x: -5, y: -5, width: 10, height: 10 }));
const KEPT = 0, REMOVED = 1;

// shares of the kept and of the removed edges side by side, so that the two distributions can be compared
const shares = (labels, kept, removed, xname, description) => {
  const W = 420, H = 250, L = 44, B = 42, T = 12;
  const sum = (list) => Math.max(1, list.reduce((a, b) => a + b, 0));
  const parts = [[kept, KEPT, "kept"], [removed, REMOVED, "removed"]].map(([list, style, name]) => [list, list.map((v) => v / sum(list)), style, name]);
  const most = Math.max(0.05, ...parts.flatMap(([, share]) => share));
  const step = most > 0.5 ? 0.2 : most > 0.2 ? 0.1 : 0.05;
  const top = Math.ceil(most / step) * step;
  const y = (v) => H - B - (v / top) * (H - B - T);
  const chart = el("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", tabindex: 0, "aria-label": description });
  for (let v = 0; v <= top + 1e-9; v += step) {
    chart.append(el("path", { class: "gridline", d: `M${L} ${y(v)}H${W - 12}` }), el("text", { class: "tick", x: L - 6, y: y(v) + 4, "text-anchor": "end" }, `${Math.round(100 * v)} %`));
  }
  const slot = (W - 12 - L) / labels.length;
  labels.forEach((label, n) => {
    chart.append(el("text", { class: "tick", x: L + slot * (n + 0.5), y: H - B + 16, "text-anchor": "middle" }, label));
    parts.forEach(([list, share, style, name], k) => {
      const width = Math.min(slot * 0.4, 34);
      const x = L + slot * (n + 0.5) + (k - 1) * width;
      const rect = el("rect", { class: "bar", x: x + 0.5, y: y(share[n]), width: width - 1, height: H - B - y(share[n]) });
      rect.dataset.tip = `${label}: ${list[n].toLocaleString("en")} edges, ${(100 * share[n]).toFixed(1)} % of the ${name}`;
      const group = el("g", { class: `line s${style}` }, rect);
      group.dataset.name = name;
      chart.append(group);
    });
  });
  chart.append(el("path", { class: "axis", d: `M${L} ${H - B}H${W - 12}` }), el("text", { class: "name", x: (L + W - 12) / 2, y: H - 7, "text-anchor": "middle" }, xname));
  wire(chart);
  return chart;
};

const neighbourhood = ([nodes, edges], kept) => {
  const W = 420, H = 360, M = 22;
  const chart = el("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", tabindex: 0,
    "aria-label": `Neighbourhood of node ${nodes[0][0]}: ${nodes.length} nodes, ${[...kept].filter((k) => k === "1").length} of ${edges.length} edges kept` });
  const spread = (n) => { const all = nodes.map((p) => p[n]); const low = Math.min(...all); return [low, Math.max(...all) - low || 1]; };
  const [x0, xs] = spread(1), [y0, ys] = spread(2);
  const at = ([, x, y]) => [M + (x - x0) / xs * (W - 2 * M), M + (y - y0) / ys * (H - 2 * M)];
  const order = edges.map((_, n) => n).sort((a, b) => kept[a] - kept[b]);
  for (const n of order) {
    const [x1, y1] = at(nodes[edges[n][0]]), [x2, y2] = at(nodes[edges[n][1]]);
    chart.append(el("line", { class: kept[n] === "1" ? "edge" : "edge removed", x1, y1, x2, y2 }));
  }
  nodes.forEach((node, n) => {
    const [cx, cy] = at(node);
    const circle = el("circle", { class: n ? "node" : "node centre", cx, cy, r: n ? 6 : 8.5 });
    circle.dataset.tip = node[3] === null ? "class not known" : `class ${node[3]}`;
    const group = el("g", { class: `line s${node[3] === null || node[3] < 0 ? 12 : [0, 7, 2, 3, 8, 5, 6, 4, 10, 11][node[3] % 10]}` }, circle);
    group.dataset.name = `node ${node[0]}${n ? "" : ", the centre"}`;
    chart.append(group);
  });
  wire(chart);
  return chart;
};

const runPage = (run) => {
  const facts = data.facts[run.index];
  const count = run.edges_total ? `${run.edges_kept.toLocaleString("en")} of ${run.edges_total.toLocaleString("en")} (${percent(1 - run.edges_kept / run.edges_total)} removed)` : "";
  const both = (val, test) => (test === null ? "" : `${number(test)} (validation ${number(val)})`);
  const step = (to, text) => (runs[to] ? el("a", { href: `#run-${to}` }, text) : "");
  const cards = [card("Outcome", listOf([
    ["edges kept", count],
    ["returned model", both(run.val, run.test)],
    ["fresh model", both(run.retrain_val, run.retrain_test)],
    ["warm start", both(run.warm_val, run.warm_test)],
    ["frozen dense model", both(run.frozen_val, run.frozen_test)],
    ["full graph", both(run.dense_val, run.dense_test)],
    ["one forward pass", run.sparse_ms === null ? "" : `${number(run.sparse_ms, 2)} ms, full graph ${number(run.dense_ms, 2)} ms`],
    ["MACs", run.macs_sparse === null ? "" : `${(run.macs_sparse / 1e6).toFixed(1)} m, full graph ${number(run.macs_dense === null ? null : run.macs_dense / 1e6)} m`],
    ["spectrum lost", run.spectrum_top === null ? "" : `largest ${percent(run.spectrum_top)}, smallest ${run.spectrum_bottom === null ? "–" : percent(run.spectrum_bottom)}`],
    ["exchanges", run.updates === null ? "" : String(run.updates)],
    ["weights removed", run.weight_sparsity === null ? "" : percent(run.weight_sparsity)],
    ["seconds", number(run.seconds)],
    ["varied", run.variation],
    ["reason", run.reason],
  ]))];
  if (facts) {
    const [all, i0, i1, c0, c1] = facts.nodes;
    const same = facts.homophily.map(([s, d]) => (s + d ? percent(s / (s + d)) : "–"));
    cards.push(card("What is left", listOf([
      ["nodes", all.toLocaleString("en")],
      ["isolated", `${i0.toLocaleString("en")} before, ${i1.toLocaleString("en")} after`],
      ["components", `${c0.toLocaleString("en")} before, ${c1.toLocaleString("en")} after`],
      ["same class at both ends", `${same[0]} of the kept, ${same[1]} of the removed edges`],
    ])));
    const [from, kept, removed] = facts.degree;
    const bins = from.map((low, n) => (low === 1 ? "1" : n === from.length - 1 ? `${low}+` : low === 2 ? "2–3" : `${low}–${2 * low - 1}`));
    const legend = () => keys(["kept", swatch(KEPT)], ["removed", swatch(REMOVED)]);
    cards.push(card("Degree of the edges", shares(bins, kept, removed, "smaller degree of the two ends", "Degrees of kept and removed edges"), legend()));
    cards.push(card("Homophily of the edges", shares(["same class", "different", "not known"], ...facts.homophily, "classes of the two ends", "Homophily of kept and removed edges"), legend()));
    if (facts.drawing !== undefined) {
      const line = (kind) => el("svg", { class: "key", viewBox: "0 -7 28 14", "aria-hidden": "true" }, el("line", { class: kind, x1: 0, y1: 0, x2: 28, y2: 0 }));
      const drawing = data.drawings[facts.drawing];
      cards.push(card(`Around node ${drawing[0][0][0]}`, neighbourhood(drawing, facts.kept), keys(["kept", line("edge")], ["removed", line("edge removed")], ["colour: class", ""])));
    }
  }
  cards.push(card("How it was made", listOf([
    ["command", el("code", {}, run.command || "–")], ["environment", run.environment], ["code", run.code], ["finished", run.finished],
    ["experiment", run.experiment], ["profile", run.profile], ["key", run.key],
  ])));
  $("#page").replaceChildren(
    el("p", { class: "tools" }, el("a", { href: "#runs" }, "← all runs"), step(run.index - 1, "previous run"), step(run.index + 1, "next run")),
    el("h2", {}, `${run.dataset} · ${backbones.get(run.backbone) || run.backbone} · ${nameOf(run)}`),
    el("p", { class: "lead" }, `${percent(run.sparsity)} of the edges removed, seed ${run.seed}${facts ? "" : ". This run has no facts about the edges it removed."}`),
    el("div", { class: "grid" }, ...cards));
};
let position = 0;
const route = () => {
  hide();
  const match = /^#run-(\d+)$/.exec(location.hash);
  const run = match && runs[Number(match[1])];
  if (run && $("#page").hidden) position = scrollY;
  $("#content").hidden = Boolean(run);
  const was = $("#page").hidden;
  $("#page").hidden = !run;
  document.body.classList.toggle("onerun", Boolean(run));
  if (run) { runPage(run); scrollTo(0, 0); $("#page").focus({ preventScroll: true }); }
  else if (!was) scrollTo(0, position);
};
addEventListener("hashchange", route);
addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("#page").hidden) location.hash = "#runs"; });

for (const section of $$("#content section")) $("#toc").append(el("li", {}, el("a", { href: `#${section.id}` }, $("h2", section).textContent)));
$("#toc").addEventListener("click", () => { if (!$("#page").hidden) setTimeout(() => document.getElementById(location.hash.slice(1))?.scrollIntoView(), 0); });
apply();
route();
