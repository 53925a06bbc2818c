// ---- downloads
const save = (name, kind, text) => {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
// texts that a spreadsheet would take for formulas are quoted; numbers, also with a spread or in per cent, are not
const NUMBER = /^[+-]?[\d.,]+(e[+-]?\d+)?( ?%| ± [\d.,]+)?$/;
const csvCell = (x) => {
  const text = x === null || x === undefined ? "" : String(x);
  const safe = typeof x === "string" && /^'*[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? `'${text}` : text;
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
  const properties = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "display", "paint-order"];
  from.forEach((node, n) => {
    const computed = getComputedStyle(node);
    to[n].setAttribute("style", properties.map((name) => `${name}:${computed.getPropertyValue(name)}`).join(";"));
  });
  const lines = $$("g.line:not(.off)", chart).filter((g, n, all) => g.dataset.name && all.findIndex((h) => h.dataset.name === g.dataset.name) === n);
  const [, , width, height] = chart.getAttribute("viewBox").split(" ").map(Number);
  const ink = getComputedStyle(document.body).color;
  lines.forEach((group, n) => {
    const x = 20 + (n % 4) * 100, y = height + 12 + Math.floor(n / 4) * 16;
    const mark = $("use, rect", group);
    if (!mark) return;
    const fill = getComputedStyle(mark).fill;
    copy.append(mark.localName === "use" ? el("use", { href: mark.getAttribute("href"), x, y, fill }) : el("rect", { x: x - 4, y: y - 4, width: 8, height: 8, fill }),
      el("text", { x: x + 8, y: y + 4, fill: ink, "font-size": 11 }, group.dataset.name));
  });
  copy.setAttribute("viewBox", `0 0 ${width} ${height + 24 + 16 * Math.floor(lines.length / 4)}`);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.prepend($(".defs defs").cloneNode(true));
  return new XMLSerializer().serializeToString(copy);
};
