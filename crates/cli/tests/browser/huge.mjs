// Looks at 100,000 candidates on a slide of 100,000 x 100,000 px in headless Chromium.
//
// usage: node --experimental-websocket huge.mjs URL CHROMIUM [SCREENSHOT.png]

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { start } from './chromium.mjs';

const [url, chromium, picture] = process.argv.slice(2);
const { page, end, troubles } = await start(chromium);
const digits = "document.getElementById('numbers').textContent.replace(/[^0-9a-z ]/g, '')";
const rest = () => new Promise((r) => { setTimeout(r, 2000); });
// Marks lie on a canvas of their own.
const marked = "(() => { const c = document.getElementById('marks'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()";

try {
  const a = await page();
  await a.call('Page.navigate', { url });
  await a.until(`${digits}.startsWith('50000 figures')`, 'half of the candidates');
  await rest();
  assert.ok(await a.run(marked) > 10000, 'figures all over the slide');
  if (picture) writeFileSync(picture, Buffer.from(await a.screenshot(), 'base64'));

  // A threshold counts all of them again.
  await a.run("(() => { const s = document.getElementById('cls'); s.value = 0.1; s.dispatchEvent(new Event('input')); })()");
  await a.until(`${digits}.startsWith('100000 figures')`, 'all candidates');

  // Near enough a few are left, on tiles of the slide's own resolution.
  const [x, y] = await a.run("(() => { const r = document.getElementById('osd').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()");
  for (let i = 0; i < 40; i += 1) await a.call('Input.dispatchMouseEvent', { type: 'mouseWheel', x, y, deltaX: 0, deltaY: -120 });
  await rest();
  const few = await a.run(marked);
  assert.ok(few > 0 && few < 100000, `${few} px are marked`);
  const tiles = await a.run("performance.getEntriesByType('resource').map((e) => e.name).filter((n) => n.includes('/tile/'))");
  const levels = tiles.map((t) => Number(t.match(/tile\/\d+\/(\d+)\//)[1]));
  assert.equal(Math.max(...levels), 8, 'eight halvings lead to a single tile');
  if (picture) writeFileSync(picture.replace(/(\.png)?$/, '-near.png'), Buffer.from(await a.screenshot(), 'base64'));
  assert.deepEqual(troubles, []);
  console.log(JSON.stringify({ ok: true }));
} finally {
  await end();
}
