/** Elements and words. All data becomes text nodes or attributes: nothing here reads markup. */

/** An element with attributes and children; strings become text. */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Write a text only if it is another one, so that a screen reader does not repeat it. */
export function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

/**
 * Bring the children of `parent` in line with `items`. A child whose item is still there stays the same element, so
 * that it keeps the focus.
 */
export function keyed(parent, items, keyOf, create, update) {
  const keys = new Set(items.map(keyOf));
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  for (const [key, child] of before) if (!keys.has(key)) child.remove();
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const child = before.get(key) ?? create(item);
    child.dataset.key = key;
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    update(child, item);
  }
}

const NUMBERS = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

const SMALL_NUMBERS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** A number for people; a dash for none. */
export function number(value) {
  if (typeof value !== "number") return "-";
  return (Math.abs(value) < 10 ? SMALL_NUMBERS : NUMBERS).format(value);
}

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** A share as a bar; the text beside it says the same. */
export function bar(taken, all) {
  const filled = make("span");
  filled.style.inlineSize = `${all > 0 ? Math.min(100, Math.max(0, (100 * taken) / all)) : 0}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, filled);
}

/** Cores taken, as text and as a bar. */
export function cores(taken, all) {
  return make("span", { class: "cores" }, make("span", {}, `${number(taken)} of ${number(all)}`), bar(taken, all));
}

/** A name from the fleet: its letters do not mix with the words around it. */
export const name = (text, tag = "span") => make(tag, { class: "name" }, String(text ?? "-"));

/** A row of a table: the first cell is its header. */
export function row(first, ...cells) {
  return make("tr", {}, make("th", { scope: "row" }, first), ...cells.map((cell) => asCell(cell)));
}

function asCell(cell) {
  if (typeof cell === "number" || cell === null) return make("td", { class: "number" }, number(cell));
  return make("td", {}, cell);
}

/** A table with a caption and column headers; a header that starts with # is of numbers. */
export function table(caption, headers, rows) {
  const heads = headers.map((words) => {
    const numbers = words.startsWith("#");
    return make("th", numbers ? { scope: "col", class: "number" } : { scope: "col" }, numbers ? words.slice(1) : words);
  });
  const made = make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...heads)));
  made.append(make("tbody", {}, ...rows));
  return make("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" }, made);
}
