const $ = (q, root = document) => root.querySelector(q);
const $$ = (q, root = document) => [...root.querySelectorAll(q)];
const SVG = "http://www.w3.org/2000/svg";
// texts of rows go through textContent or setAttribute only, so that they are never parsed as markup
const el = (name, attributes = {}, ...children) => {
  const svg = ["svg", "g", "path", "rect", "circle", "text", "use", "line"].includes(name);
  const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

// ---- theme
const root = document.documentElement;
const remember = (theme) => { try { localStorage.setItem("gst-theme", theme); } catch { /* no storage for file: URLs */ } };
try { root.dataset.theme = localStorage.getItem("gst-theme") || ""; } catch { /* same */ }
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
const names = new Map($$("input[name=method]").map((i) => [i.value, [i.parentElement.textContent.trim(), i.parentElement.className]]));
const backbones = new Map(data.backbones);
const nameOf = (run) => (names.get(run.method) || [run.method])[0];
const percent = (x) => `${Math.round(1000 * x) / 10} %`;
const number = (x, digits = 1) => (x === null || x === undefined ? "–" : x.toFixed(digits));

// ---- filters: the checked values of each kind; a kind without inputs lets everything through
const form = $("#filters");
const checked = (kind) => {
  const inputs = $$(`input[name=${kind}]`, form);
  return inputs.length ? new Set(inputs.filter((i) => i.checked).map((i) => i.value)) : null;
};
let passes = () => true;
const apply = () => {
  const kinds = ["dataset", "backbone", "profile", "method", "measure"];
  const sets = Object.fromEntries(kinds.map((kind) => [kind, checked(kind)]));
  const matches = (item) => kinds.every((k) => item[k] === undefined || item[k] === "" && k !== "measure" || !sets[k] || sets[k].has(item[k]));
  passes = (run) => matches({ dataset: run.dataset, backbone: run.backbone, profile: run.profile, method: run.method === "dense" ? "" : run.method });
  for (const item of $$("#content [data-dataset], #content [data-method], #content [data-measure]")) item.classList.toggle("off", !matches(item.dataset));
  for (const grid of $$("#content div.grid")) grid.nextElementSibling.classList.toggle("off", $$("figure:not(.off)", grid).length > 0);
  page = 0;
  list();
};
form.addEventListener("change", apply);
form.addEventListener("submit", (event) => event.preventDefault());
for (const button of $$("[data-all]", form)) button.addEventListener("click", () => {
  for (const input of $$("input[name=method]", form)) input.checked = Boolean(button.dataset.all);
  apply();
});
for (const label of $$(".methods label", form)) {
  const method = $("input", label).value;
  label.addEventListener("pointerenter", () => highlight(method));
  label.addEventListener("pointerleave", () => highlight(null));
}
const highlight = (method) => {
  for (const chart of $$("svg.chart")) {
    const lines = method === null ? [] : $$("g.line", chart).filter((g) => g.dataset.method === method);
    chart.classList.toggle("dim", lines.length > 0);
    for (const g of $$("g.line", chart)) g.classList.toggle("hot", lines.includes(g));
  }
};
