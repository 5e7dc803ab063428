// Sets thresholds in the viewer and keeps them as a run of their own by the button, in headless Chromium.
//
// usage: node --experimental-websocket keep.mjs URL CHROMIUM SEG CLS FOLDER [SCREENSHOT.png]
//
// FOLDER: where the run has to be.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { judged } from './axe.mjs';
import { start } from './chromium.mjs';

const [url, chromium, seg, cls, folder, picture] = process.argv.slice(2);
const { page, end, troubles } = await start(chromium);
const text = (id) => `document.getElementById('${id}').textContent`;

try {
  const p = await page();
  await p.call('Page.navigate', { url });
  await p.until(`${text('numbers')} !== ''`, 'the slide');
  const before = await p.run(text('numbers'));
  assert.equal(await p.run("document.getElementById('keep').hidden"), true, 'there is nothing to keep yet');
  for (const [id, v] of [['seg', seg], ['cls', cls]]) {
    await p.run(`(() => { const s = document.getElementById('${id}'); s.value = ${v}; s.dispatchEvent(new Event('input')); })()`);
  }
  await p.until("!document.getElementById('keep').hidden && !document.getElementById('moved').hidden", 'other thresholds');
  assert.notEqual(await p.run(text('numbers')), before);
  assert.match(await p.run(text('keep-command')), new RegExp(`^mithras recount .* --operating-point ${seg},${cls} --into DIR$`));
  const [x, y, free] = await p.run(`(() => {
    const b = document.getElementById('keep-run');
    b.scrollIntoView({ block: 'center' });
    const r = b.getBoundingClientRect();
    const [x, y] = [r.x + r.width / 2, r.y + r.height / 2];
    return [x, y, b.contains(document.elementFromPoint(x, y))];
  })()`);
  assert.ok(free, 'the button is behind something');
  await p.click(x, y);
  await p.until(`${text('kept')}.startsWith('kept: ') && !document.getElementById('keep-run').disabled`, 'the run is kept');
  assert.ok((await p.run(text('kept'))).includes(folder), await p.run(text('kept')));
  await judged(p, 'the viewer with kept thresholds');
  if (picture) writeFileSync(picture.replace(/(\.png)?$/, '-kept.png'), Buffer.from(await p.screenshot(), 'base64'));
  assert.deepEqual(troubles, []);
} finally {
  await end();
}
process.exit(0);
