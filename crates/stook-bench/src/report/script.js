// Sorts tables, switches between light and dark, hands out the raw samples. The page is complete without it.
"use strict";
{
  const root = document.documentElement;
  const look = document.getElementById("look");
  const isDark = () =>
    root.dataset.look ? root.dataset.look === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => { look.textContent = isDark() ? "Light" : "Dark"; };
  look.hidden = false;
  look.addEventListener("click", () => { root.dataset.look = isDark() ? "light" : "dark"; name(); });
  name();

  for (const button of document.querySelectorAll("button[data-raw]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const text = document.getElementById(button.dataset.raw).textContent.trimStart();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
      link.download = button.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b
      : typeof a === "number" ? -1 : typeof b === "number" ? 1 : a.localeCompare(b);
  for (const head of document.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.ariaSort !== "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.ariaSort = up ? "ascending" : "descending";
      const body = head.closest("table").tBodies[0];
      const rows = [...body.rows].sort((a, b) =>
        (up ? 1 : -1) * compare(value(a, head.cellIndex), value(b, head.cellIndex)));
      body.append(...rows);
    });
  }
}
