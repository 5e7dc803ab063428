// Sorts the page of a cohort's quality by keys and by mouse, in headless Chromium.
//
// usage: node --experimental-websocket quality.mjs URL CHROMIUM [SCREENSHOT.png]

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { judged, walked } from './axe.mjs';
import { start } from './chromium.mjs';

const [url, chromium, picture] = process.argv.slice(2);
const { page, end, troubles } = await start(chromium);
const names = "[...document.querySelectorAll('.quality tbody tr')].map((r) => r.cells[1].textContent)";
const head = (k) => `document.querySelectorAll('.quality thead th')[${k}]`;

try {
  const a = await page();
  await a.call('Page.navigate', { url });
  await a.until("document.readyState === 'complete' && document.querySelector('.quality tbody tr') !== null", 'the table');
  const first = await a.run(names);
  assert.equal(first[0], 'broken', 'what cannot be read comes first');
  await a.until("[...document.images].every((i) => i.complete && i.naturalWidth > 0 && i.alt !== '')", 'every picture');
  if (picture) writeFileSync(picture, Buffer.from(await a.screenshot(), 'base64'));

  await judged(a, 'the quality of a cohort');
  await walked(a, 'the quality of a cohort');
  // By keys alone: the second column's name is reached and pressed.
  await a.run(`${head(1)}.querySelector('button').focus()`);
  await a.key('Enter');
  assert.deepEqual(await a.run(names), [...first].sort((x, y) => x.localeCompare(y)));
  assert.equal(await a.run(`${head(1)}.getAttribute('aria-sort')`), 'ascending');
  await a.key('Enter');
  assert.deepEqual(await a.run(names), [...first].sort((x, y) => y.localeCompare(x)));
  assert.match(await a.run("document.querySelector('[role=status]').textContent"), /sorted by slide, descending/);

  // By mouse: numbers as numbers, a slide without one last in either order.
  const { x, y } = await a.run(`(() => { const b = ${head(7)}.querySelector('button'); b.scrollIntoView(); const r = b.getBoundingClientRect(); return { x: r.x + 5, y: r.y + r.height / 2 }; })()`);
  for (const sign of [1, -1]) {
    await a.click(x, y);
    const values = await a.run("[...document.querySelectorAll('.quality tbody tr')].map((r) => r.cells[7].dataset.v ?? null)");
    assert.equal(values.at(-1), null);
    const numbers = values.slice(0, -1).map(Number);
    assert.deepEqual(numbers, [...numbers].sort((p, q) => sign * (p - q)));
    assert.equal(await a.run(`${head(1)}.getAttribute('aria-sort')`), null);
  }
  assert.deepEqual(troubles, []);
} finally {
  await end();
}
process.exit(0);
