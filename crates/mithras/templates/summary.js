// Sorts the slides by a column, and shows a slide's pictures from its folder.
const body = document.getElementById("slides").tBodies[0];
const shut = (row) => {
  row.previousElementSibling.querySelector(".open").setAttribute("aria-expanded", "false");
  row.remove();
};
const close = () => body.querySelectorAll(".shown").forEach(shut);
const value = (row, k) => {
  const cell = row.cells[k], number = Number(cell.dataset.v ?? (k ? cell.textContent : NaN));
  return Number.isNaN(number) ? cell.textContent : number;
};
const order = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : typeof a === typeof b ? a.localeCompare(b) : typeof a === "number" ? 1 : -1;
const heads = [...document.querySelectorAll("#slides th")];
heads.forEach((head, k) => {
  head.firstElementChild.onclick = () => {
    close();
    const was = head.getAttribute("aria-sort"), down = was ? was === "ascending" : k > 0;
    const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * order(value(a, k), value(b, k)));
    heads.forEach((h) => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows);
  };
});
body.onclick = (event) => {
  const at = event.target.dataset.at;
  if (!at) return;
  const row = event.target.closest("tr"), shown = row.nextElementSibling;
  if (shown?.className === "shown") return shut(shown);
  event.target.setAttribute("aria-expanded", "true");
  const cell = body.insertRow(row.sectionRowIndex + 1).insertCell();
  cell.parentNode.className = "shown";
  cell.colSpan = row.cells.length;
  for (const name of ["thumbnail.jpg", "figures.jpg"]) {
    const image = document.createElement("img");
    image.loading = "lazy";
    image.alt = `${name} of ${event.target.textContent}`;
    image.onerror = () => image.remove();
    image.src = at + name;
    cell.append(image);
  }
};
