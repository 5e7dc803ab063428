// What the scripts of served pages share.

export const $ = (id) => document.getElementById(id);

async function value(answer) {
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

/** JSON of the server; its refusal is an error with its words. */
export const get = async (path) => value(await fetch(path, { cache: 'no-store' }));

/** Sends JSON to the server. */
export const post = async (path, body) => value(await fetch(path, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
}));

/** Draws the longest bar of 1, 2 or 5 times a power of ten um that fits into `room` px; none where um/px is unknown. */
export function scaleBar(element, umPerPx, room = 120) {
  element.hidden = !(umPerPx > 0);
  if (element.hidden) return;
  const rough = room * umPerPx;
  const power = 10 ** Math.floor(Math.log10(rough));
  const length = [5, 2, 1].map((k) => k * power).find((v) => v <= rough) || power;
  element.firstElementChild.style.width = `${length / umPerPx}px`;
  element.lastElementChild.textContent = length >= 1000 ? `${length / 1000} mm` : `${length} µm`;
}
