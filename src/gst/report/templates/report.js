"use strict";
(() => {
  const $ = (q, root = document) => root.querySelector(q);
  const $$ = (q, root = document) => [...root.querySelectorAll(q)];
  const SVG = "http://www.w3.org/2000/svg";
  // every text of a row goes through textContent or setAttribute: nothing in it is ever markup
  const el = (name, attributes = {}, ...children) => {
    const svg = ["svg", "g", "path", "rect", "circle", "text", "use", "line"].includes(name);
    const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  // ---- theme
  const root = document.documentElement;
  const remember = (theme) => { try { localStorage.setItem("gst-theme", theme); } catch { /* a file has no storage */ } };
  try { root.dataset.theme = localStorage.getItem("gst-theme") || ""; } catch { /* likewise */ }
  $("#theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remember(root.dataset.theme);
  });
  if (innerWidth < 992) $(".filters").open = false;

  // ---- rows
  const data = JSON.parse($("#rundata").textContent);
  const texts = new Set(data.texts);
  const runs = data.rows.map((line, index) => {
    const run = { index };
    data.columns.forEach((name, n) => { run[name] = texts.has(name) ? data.strings[line[n]] : line[n]; });
    return run;
  });
  const names = new Map($$("input[name=series]").map((i) => [i.value, [i.parentElement.textContent.trim(), i.parentElement.className]]));
  const nameOf = (run) => (names.get(run.series) || [run.series])[0];
  const percent = (x) => `${Math.round(1000 * x) / 10} %`;
  const number = (x, digits = 1) => (x === null || x === undefined ? "–" : x.toFixed(digits));

  // ---- filters: what is chosen of each kind; a kind without choices lets everything through
  const form = $("#filters");
  const chosen = (kind) => {
    const inputs = $$(`input[name=${kind}]`, form);
    return inputs.length ? new Set(inputs.filter((i) => i.checked).map((i) => i.value)) : null;
  };
  let passes = () => true;
  const apply = () => {
    const kinds = ["dataset", "backbone", "profile", "series", "measure"];
    const sets = Object.fromEntries(kinds.map((kind) => [kind, chosen(kind)]));
    const fits = (item) => kinds.every((k) => item[k] === undefined || item[k] === "" && k !== "measure" || !sets[k] || sets[k].has(item[k]));
    passes = (run) => fits({ dataset: run.dataset, backbone: run.backbone, profile: run.profile, series: run.series === "dense" ? "" : run.series });
    for (const item of $$("#content [data-dataset], #content [data-series], #content [data-measure]")) item.classList.toggle("off", !fits(item.dataset));
    for (const grid of $$("#content div.grid")) grid.nextElementSibling.classList.toggle("off", $$("figure:not(.off)", grid).length > 0);
    page = 0;
    list();
  };
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const button of $$("[data-all]", form)) button.addEventListener("click", () => {
    for (const input of $$("input[name=series]", form)) input.checked = Boolean(button.dataset.all);
    apply();
  });
  for (const label of $$(".methods label", form)) {
    const series = $("input", label).value;
    label.addEventListener("pointerenter", () => light(series));
    label.addEventListener("pointerleave", () => light(null));
  }
  const light = (series) => {
    for (const chart of $$("svg.chart")) {
      const mine = series === null ? [] : $$("g.line", chart).filter((g) => g.dataset.series === series);
      chart.classList.toggle("dim", mine.length > 0);
      for (const g of $$("g.line", chart)) g.classList.toggle("hot", mine.includes(g));
    }
  };

  // ---- charts: the nearest point under the pointer, or the arrow keys
  const tip = $("#tip");
  const hide = () => {
    tip.hidden = true;
    for (const chart of $$("svg.chart.dim")) chart.classList.remove("dim");
    for (const node of $$("svg.chart .hot, svg.chart .here")) node.classList.remove("hot", "here");
  };
  const show = (chart, mark) => {
    hide();
    const group = mark.closest("g.line");
    chart.classList.add("dim");
    group.classList.add("hot");
    mark.classList.add("here");
    for (const twin of $$("g.line", chart)) if (twin.dataset.name === group.dataset.name) twin.classList.add("hot");
    tip.replaceChildren(el("b", {}, group.dataset.name), mark.dataset.tip);
    tip.hidden = false;
    const box = mark.getBoundingClientRect();
    const left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), innerWidth - tip.offsetWidth - 8);
    const above = box.top - tip.offsetHeight - 10;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 10}px`;
  };
  const marks = (chart) => $$("g.line:not(.off) [data-tip]", chart);
  const wire = (chart) => {
    chart.addEventListener("pointermove", (event) => {
      let best = null, nearest = 30 ** 2;
      for (const mark of marks(chart)) {
        const box = mark.getBoundingClientRect();
        const inside = mark.classList.contains("bar") && event.clientX >= box.left && event.clientX <= box.right;
        const d = inside ? 0 : (event.clientX - box.left - box.width / 2) ** 2 + (event.clientY - box.top - box.height / 2) ** 2;
        if (d < nearest) { nearest = d; best = mark; }
      }
      if (best) show(chart, best); else hide();
    });
    chart.addEventListener("pointerleave", hide);
    chart.addEventListener("blur", hide);
    chart.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
      if (event.key === "Escape") return hide();
      if (!steps[event.key]) return;
      event.preventDefault();
      const all = marks(chart);
      if (!all.length) return;
      const here = all.find((m) => m.classList.contains("here"));
      if (!here) return show(chart, all[all.length - $$("[data-tip]", all[all.length - 1].closest("g.line")).length]);
      const [along, across] = steps[event.key];
      const groups = [...new Set(all.map((m) => m.closest("g.line")))];
      const group = here.closest("g.line");
      const own = $$("[data-tip]", group);
      const bars = here.classList.contains("bar");
      if (along || bars) {
        const row = bars ? all : own;
        show(chart, row[(row.indexOf(here) + (along || across) + row.length) % row.length]);
      } else {
        const next = $$("[data-tip]", groups[(groups.indexOf(group) + across + groups.length) % groups.length]);
        show(chart, next[Math.min(own.indexOf(here), next.length - 1)]);
      }
    });
  };
  $$("svg.chart").forEach(wire);

  // ---- downloads
  const save = (name, kind, text) => {
    const link = el("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  // a spreadsheet must not take a text for a formula
  const csvCell = (x) => {
    const text = x === null || x === undefined ? "" : String(x);
    const safe = typeof x === "string" && /^[=+@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const csv = (lines) => lines.map((line) => line.map(csvCell).join(",")).join("\n") + "\n";
  const latex = JSON.parse($("#latexdata").textContent);
  const fileName = (text) => text.replace(/[^\p{L}\p{N}.+-]+/gu, "-").replace(/^-+|-+$/g, "") || "gst";
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.csv !== undefined) {
      const table = $$("table[data-table]").find((t) => t.dataset.table === button.dataset.csv);
      const lines = $$("tr:not(.off)", table).map((tr) => $$("th, td", tr).map((cell) => cell.textContent));
      save(`${fileName(button.dataset.csv)}.csv`, "text/csv", csv(lines));
    } else if (button.dataset.latex !== undefined) {
      save(`${fileName(button.dataset.latex)}.tex`, "application/x-tex", latex[button.dataset.latex]);
    } else if (button.dataset.svg !== undefined) {
      save(`${fileName(button.dataset.svg)}.svg`, "image/svg+xml", standalone($("svg.chart", button.closest("figure"))));
    }
  });
  const standalone = (chart) => {
    hide();
    const copy = chart.cloneNode(true);
    const from = [chart, ...$$("*", chart)], to = [copy, ...$$("*", copy)];
    const wanted = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "display", "paint-order"];
    from.forEach((node, n) => {
      const look = getComputedStyle(node);
      to[n].setAttribute("style", wanted.map((name) => `${name}:${look.getPropertyValue(name)}`).join(";"));
    });
    copy.setAttribute("xmlns", SVG);
    copy.setAttribute("font-family", "system-ui, sans-serif");
    copy.prepend($(".defs defs").cloneNode(true));
    return new XMLSerializer().serializeToString(copy);
  };

  // ---- list of runs
  const columns = [
    ["run", null, (r) => el("a", { href: `#run-${r.index}` }, `${r.dataset} · ${r.backbone}`), (r) => `${r.dataset} ${r.backbone}`],
    ["method", null, (r) => nameOf(r), (r) => nameOf(r)],
    ["removed", 1, (r) => percent(r.sparsity), (r) => r.sparsity],
    ["seed", 1, (r) => r.seed, (r) => r.seed],
    ["varied", null, (r) => r.variation || "", (r) => r.variation],
    ["val", 1, (r) => number(r.val), (r) => r.val],
    ["test", 1, (r) => number(r.test), (r) => r.test],
    ["fresh", 1, (r) => number(r.retrain_test), (r) => r.retrain_test],
    ["warm", 1, (r) => number(r.warm_test), (r) => r.warm_test],
    ["dense", 1, (r) => number(r.dense_test), (r) => r.dense_test],
    ["seconds", 1, (r) => number(r.seconds), (r) => r.seconds],
    ["experiment", null, (r) => r.experiment, (r) => r.experiment],
    ["profile", null, (r) => r.profile, (r) => r.profile],
    ["status", null, (r) => r.status, (r) => r.status],
  ];
  const SIZE = 25;
  let page = 0, sort = null, down = false, shown = runs;
  const heads = $("#runtable thead tr");
  columns.forEach(([name, numeric], n) => {
    const button = el("button", { type: "button" }, name);
    button.addEventListener("click", () => {
      down = sort === n ? !down : false;
      sort = n;
      for (const th of heads.children) th.removeAttribute("aria-sort");
      button.parentElement.setAttribute("aria-sort", down ? "descending" : "ascending");
      list();
    });
    heads.append(el("th", { scope: "col", ...(numeric ? { class: "number" } : {}) }, button));
  });
  const list = () => {
    const words = $("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = runs.filter((run) => passes(run) && words.every((word) =>
      `${run.dataset} ${run.backbone} ${nameOf(run)} ${run.method} ${run.recipe} ${run.sparsity} ${run.variation} ${run.experiment} ${run.profile} ${run.status} seed${run.seed}`.toLowerCase().includes(word)));
    if (sort !== null) {
      const of = columns[sort][3];
      const missing = (v) => v === null || v === undefined || v === "";
      shown.sort((a, b) => {
        const x = of(a), y = of(b);
        if (missing(x) || missing(y)) return missing(x) - missing(y);
        return (x < y ? -1 : x > y ? 1 : a.index - b.index) * (down ? -1 : 1);
      });
    }
    const pages = Math.max(1, Math.ceil(shown.length / SIZE));
    page = Math.min(page, pages - 1);
    $("#runtable tbody").replaceChildren(...shown.slice(page * SIZE, (page + 1) * SIZE).map((run) =>
      el("tr", {}, ...columns.map(([, numeric, cell]) => el("td", numeric ? { class: "number" } : {}, cell(run) ?? "")))));
    $("#place").textContent = `${shown.length.toLocaleString("en")} runs, page ${page + 1} of ${pages}`;
    $("#back").disabled = page === 0;
    $("#forth").disabled = page === pages - 1;
  };
  $("#back").addEventListener("click", () => { page -= 1; list(); });
  $("#forth").addEventListener("click", () => { page += 1; list(); });
  $("#search").addEventListener("input", () => { page = 0; list(); });
  $("#allruns").addEventListener("click", () => save("runs.csv", "text/csv", csv([data.columns.slice(1), ...shown.map((run) => data.columns.slice(1).map((name) => run[name]))])));

  // ---- page of a run
  const listOf = (pairs) => el("dl", { class: "facts" }, ...pairs.filter(([, v]) => v !== "" && v !== "–" && v !== null && v !== undefined)
    .flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v instanceof Node ? v : String(v))]));
  const card = (title, ...content) => el("figure", { class: "card" }, el("figcaption", {}, el("h3", {}, title)), ...content);
  const keys = (...entries) => el("ul", { class: "legend" }, ...entries.map(([name, mark]) => el("li", {}, mark, name)));
  const swatch = (style) => el("svg", { class: `key s${style}`, viewBox: "-7 -7 14 14", "aria-hidden": "true" }, el("rect", { class: "bar", x: -5, y: -5, width: 10, height: 10 }));
  const KEPT = 0, REMOVED = 1;

  // shares of the kept and of the removed edges, side by side: their shapes compare although their numbers differ
  const shares = (labels, kept, removed, xname, says) => {
    const W = 420, H = 250, L = 44, B = 42, T = 12;
    const sum = (list) => Math.max(1, list.reduce((a, b) => a + b, 0));
    const parts = [[kept, KEPT, "kept"], [removed, REMOVED, "removed"]].map(([list, style, name]) => [list, list.map((v) => v / sum(list)), style, name]);
    const top = Math.max(0.05, ...parts.flatMap(([, share]) => share)) * 1.1;
    const y = (v) => H - B - (v / top) * (H - B - T);
    const chart = el("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", tabindex: 0, "aria-label": says });
    for (let k = 0; k <= 4; k++) {
      const v = (top / 1.1) * k / 4;
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
      ["full graph", both(run.dense_val, run.dense_test)],
      ["one forward pass", run.sparse_ms === null ? "" : `${number(run.sparse_ms, 2)} ms, full graph ${number(run.dense_ms, 2)} ms`],
      ["MACs", run.macs_sparse === null ? "" : `${(run.macs_sparse / 1e6).toFixed(1)} m, full graph ${number(run.macs_dense === null ? null : run.macs_dense / 1e6)} m`],
      ["spectrum lost", run.spectrum_top === null ? "" : `largest ${percent(run.spectrum_top)}, smallest ${run.spectrum_bottom === null ? "–" : percent(run.spectrum_bottom)}`],
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
      el("h2", {}, `${run.dataset} · ${run.backbone} · ${nameOf(run)}`),
      el("p", { class: "lead" }, `${percent(run.sparsity)} of the edges removed, seed ${run.seed}${facts ? "" : ". This run carries no facts of what it removed."}`),
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
})();
