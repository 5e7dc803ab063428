// Uses the start page in headless Chromium, as somebody without a command line would.
//
// usage: node --experimental-websocket start.mjs URL CHROMIUM FOLDER [SCREENSHOT]

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { judged, walked } from './axe.mjs';
import { start } from './chromium.mjs';

const [url, chromium, folder, shot] = process.argv.slice(2);
const { page, end, troubles } = await start(chromium);
const text = (id) => `document.getElementById('${id}').textContent`;

try {
  const p = await page();
  await p.call('Page.navigate', { url });
  await p.until("document.body.dataset.ready === 'true'", 'the page');
  // Every field has a name, every button a text, and every picture a description.
  assert.deepEqual(await p.run("[...document.querySelectorAll('input:not([type=checkbox]), select')].filter((e) => !e.labels.length).map((e) => e.id)"), []);
  assert.deepEqual(await p.run("[...document.querySelectorAll('button')].filter((e) => !e.textContent.trim()).map((e) => e.id)"), []);
  assert.equal(await p.run("document.getElementById('start').disabled"), true);
  // A typed path, by the keyboard.
  await p.run("document.getElementById('path').focus(); document.getElementById('path').select()");
  await p.call('Input.insertText', { text: folder });
  await p.key('Enter');
  await p.until("document.querySelectorAll('#entries input').length === 2", 'two slides in the list');
  await judged(p, 'a folder of the start page');
  await walked(p, 'a folder of the start page');
  await p.run("document.getElementById('add-folder').focus()");
  await p.key('Enter');
  await p.until(`${text('start-note')}.includes('1 of 2 slides cannot be used')`, 'both slides looked at');
  assert.match(await p.run(text('chosen')), /broken\.svs.*900 × 700 px.*0\.2500/s);
  await p.until("document.querySelector('#chosen img').naturalWidth > 0", 'a picture');
  await judged(p, 'chosen slides, one of them broken');
  // Numbers and the words of buttons are on one line.
  const broken = `[...document.querySelectorAll('#chosen td:nth-child(3), #chosen td:nth-child(4), #chosen button')].filter((e) => {
    const range = document.createRange();
    range.selectNodeContents(e);
    return new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1;
  }).map((e) => e.textContent)`;
  assert.deepEqual(await p.run(broken), []);
  // What was chosen is still there after a reload.
  await p.run("document.body.dataset.ready = 'false'; location.reload()");
  await p.until("document.body.dataset.ready === 'true' && !document.getElementById('start').disabled", 'the page again');
  // Her table of cases, by the keyboard from the list of the folder.
  await p.run("[...document.querySelectorAll('#entries button')].find((b) => b.ariaLabel === 'Use cases.csv as table').focus()");
  await p.key('Enter');
  assert.match(await p.run("document.getElementById('table').value"), /cases\.csv$/);
  assert.equal(await p.run('document.activeElement.id'), 'table');
  await p.run("document.getElementById('start').focus()");
  await p.key('Enter');
  await p.until(`${text('phase')} === 'Done.'`, 'the end of the run');
  await p.until("!document.getElementById('results').hidden", 'results');
  assert.match(await p.run(text('slides')), /broken.*failed/s);
  // A screen reader and the keyboard are where the results begin.
  assert.equal(await p.run('document.activeElement.id'), 'h-results');
  // Reviewed in the viewer, the slide is counted with the review, and the page finds who reviewed when it is seen again.
  const viewer = await p.run(`fetch('api/view', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ path: ${text('folder')} }) }).then((r) => r.json()).then((r) => r.url)`);
  const q = await page();
  await q.call('Page.navigate', { url: new URL(viewer, url).href });
  await q.until(`${text('name')} === 'good' && ${text('numbers')} !== ''`, 'the viewer of the run');
  await q.run("(() => { const r = document.getElementById('reviewer'); r.value = 'anna'; r.dispatchEvent(new Event('change')); document.activeElement.blur(); })()");
  await q.run('new Promise((r) => setTimeout(r, 800))');
  await q.key('+');
  await q.key(' ');
  await q.until(`${text('reviewed')} === '1 reviewed'`, 'an added figure');
  await p.front();
  await p.run("document.dispatchEvent(new Event('visibilitychange'))");
  await p.until("!document.getElementById('review-field').hidden && document.getElementById('reviewer').value === 'anna'", 'the reviewer');
  await p.run("document.getElementById('recount').focus()");
  await p.key('Enter');
  await p.until(`/\\d+, hotspot \\d+ \\(anna\\)/.test(${text('counts')})`, 'reviewed numbers');
  await p.run("document.getElementById('report').focus()");
  await p.key('Enter');
  await p.until(`document.querySelectorAll('#links a').length > 0 || ${text('results-error')}`, 'a report');
  assert.equal(await p.run(text('results-error')), '');
  assert.match(await p.run(text('links')), /Case 7/);
  assert.match(await p.run(text('remarks')), /'third'/);
  await judged(p, 'results of the start page');
  const order = await walked(p, 'results of the start page');
  for (const id of ['path', 'regions', 'table', 'model', 'out', 'start', 'view', 'report', 'reveal']) assert.ok(order.includes(id), `${id}: ${order}`);
  // What is there already is refused, with two ways on, and the page says so.
  await p.run("document.getElementById('start').focus()");
  await p.key('Enter');
  await p.until("!document.getElementById('exists').hidden", 'the question what to do with results that are there');
  assert.equal(await p.run("[...document.querySelectorAll('#exists button')].length"), 2);
  await judged(p, 'results that are there');
  if (shot) writeFileSync(shot, Buffer.from((await p.call('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true })).data, 'base64'));
  assert.deepEqual(troubles, []);
} finally {
  await end();
}
