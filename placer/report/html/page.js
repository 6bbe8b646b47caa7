"use strict";

for (const data of document.querySelectorAll("script[data-chart]")) {
  const place = document.getElementById(data.dataset.chart);
  const spec = JSON.parse(data.textContent);
  const widths = spec.usermeta;
  spec.config.legend.columns = Math.max(1, Math.floor((place.clientWidth - widths.axis) / widths.legend));
  vegaEmbed(place, spec, { renderer: "svg", actions: false, ast: true, mode: "vega-lite" })
    .then(() => { place.dataset.drawn = "true"; })
    .catch((failed) => { place.textContent = `This chart could not be drawn: ${failed.message}`; });
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const number = head.classList.contains("number");
    const by = (row) => row.cells[column].dataset.by;
    const compare = (one, other) => {
      const [a, b] = [by(one), by(other)];
      if (a === "" || b === "") return (a === "") - (b === "");
      return (down ? -1 : 1) * (number ? a - b : a.localeCompare(b, "en", { numeric: true }));
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  }));
}

const root = document.documentElement;
const button = document.getElementById("theme");
const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const showPressed = () => { button.setAttribute("aria-pressed", String(dark())); };
button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; showPressed(); });
showPressed();
