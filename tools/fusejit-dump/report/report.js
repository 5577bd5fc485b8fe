"use strict";
// Without this script the page can be read all the same; with it tables are sorted and searched, pictures made larger.
const table = document.getElementById("table");
const body = table.tBodies[0];
const heads = [...table.tHead.rows[0].cells];

function sortBy(column) {
  const head = heads[column];
  const wasDown = head.getAttribute("aria-sort") === "descending";
  const isText = !head.classList.contains("n");
  // What is large is asked for first, names from the beginning.
  const first = isText || column === 0 ? "ascending" : "descending";
  const order = head.hasAttribute("aria-sort") ? (wasDown ? "ascending" : "descending") : first;
  const key = row => isText ? row.cells[column].textContent : Number(row.cells[column].dataset.v);
  const compare = (a, b) => isText ? key(a).localeCompare(key(b)) : key(a) - key(b);
  const sorted = [...body.rows].sort((a, b) => order === "ascending" ? compare(a, b) : compare(b, a));
  heads.forEach(h => h.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", order);
  body.append(...sorted);
}
heads.forEach((head, column) => head.addEventListener("click", () => sortBy(column)));

const search = document.getElementById("search");
search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/);
  let found = 0;
  for (const row of body.rows) {
    const text = row.cells[1].textContent.toLowerCase() + " " + row.cells[2].textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
    if (!row.hidden) ++found;
  }
  document.getElementById("found").textContent = search.value ? found + " of " + body.rows.length : "";
});

const paper = document.querySelector(".paper");
const picture = paper && paper.querySelector("svg");
function zoom(how) {
  const box = picture.viewBox.baseVal;
  const now = picture.getBoundingClientRect().width / box.width;
  const factor = how === "fit" ? (paper.clientWidth - 2) / box.width : how === "1" ? 1 : now * Number(how);
  const middle = (paper.scrollTop + paper.clientHeight / 2) / now;
  picture.setAttribute("width", box.width * factor);
  picture.setAttribute("height", box.height * factor);
  paper.scrollTop = middle * factor - paper.clientHeight / 2;
  paper.scrollLeft = (box.width * factor - paper.clientWidth) / 2;
}
document.querySelectorAll("[data-zoom]").forEach(b => b.addEventListener("click", () => zoom(b.dataset.zoom)));
// At first as much of the width as can be read, with the first kernel in the middle.
function begin() {
  const width = picture.viewBox.baseVal.width;
  zoom(String(Math.min(1, Math.max(0.6, (paper.clientWidth - 2) / width))));
  const first = document.getElementById("b0");
  if (!first) return;
  const box = first.getBoundingClientRect(), frame = paper.getBoundingClientRect();
  paper.scrollTop = 0;
  paper.scrollLeft += box.left + box.width / 2 - frame.left - frame.width / 2;
}
if (paper) begin();

// Where a link leads to is open, and found however the table was searched.
function arrive() {
  const there = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!there) return;
  there.hidden = false;
  for (let e = there; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  there.scrollIntoView({ block: there.tagName === "DETAILS" ? "start" : "center", inline: "center" });
}
addEventListener("hashchange", arrive);
arrive();
