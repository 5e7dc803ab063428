// Ticks a slide, starts, cancels and continues its run, and opens the viewer, all by mouse, in headless Chromium.
//
// usage: node --experimental-websocket start_mouse.mjs URL CHROMIUM FOLDER

import assert from 'node:assert/strict';
import { start } from './chromium.mjs';

const [url, chromium, folder] = process.argv.slice(2);
const { page, end, troubles } = await start(chromium);
const text = (id) => `document.getElementById('${id}').textContent`;
const element = (id) => `document.getElementById('${id}')`;

try {
  const p = await page();
  /** Clicks the middle of an element, where nothing else may be. */
  const press = async (code) => {
    const [x, y, free] = await p.run(`(() => {
      const e = ${code};
      e.scrollIntoView({ block: 'center' });
      const r = e.getBoundingClientRect();
      const [x, y] = [r.x + r.width / 2, r.y + r.height / 2];
      return [x, y, e.contains(document.elementFromPoint(x, y))];
    })()`);
    assert.ok(free, `${code} is behind something`);
    await p.click(x, y);
  };
  /** The tab of a viewer of the slide, other than at this address. */
  const tab = async (other) => {
    for (let i = 0; i < 400; i += 1) {
      const { targetInfos } = await p.call('Target.getTargets');
      const found = targetInfos.find((t) => t.type === 'page' && t.title === 'good - mithras' && !(other && t.url.startsWith(other)));
      if (found) return found.url.split('#')[0];
      await new Promise((r) => { setTimeout(r, 50); });
    }
    throw new Error(`no viewer was opened: ${await p.run(`${text('list-error')} + ${text('results-error')}`)}`);
  };
  await p.call('Page.navigate', { url });
  await p.until("document.body.dataset.ready === 'true'", 'the page');
  await press(element('path'));
  await p.run("document.getElementById('path').select()");
  await p.call('Input.insertText', { text: folder });
  await press("document.querySelector('#go button[type=submit]')");
  await p.until("document.querySelectorAll('#entries input').length === 2", 'two slides in the list');
  // One of them is ticked.
  await press("[...document.querySelectorAll('#entries label')].find((l) => l.textContent.includes('good.tiff')).querySelector('input')");
  assert.deepEqual(await p.run("[...document.querySelectorAll('#entries input')].map((b) => b.checked).sort()"), [false, true]);
  await press(element('add'));
  await p.until(`!${element('start')}.disabled && ${text('start-note')} === '1 of 1 slides can be used.'`, 'the ticked slide is looked at');
  assert.ok(!(await p.run(text('chosen'))).includes('broken'), 'what was not ticked was not taken');
  // The tumour is drawn before anything is searched, in the viewer of the slide; who comes back finds the regions named.
  await press("[...document.querySelectorAll('#chosen button')].find((b) => b.textContent === 'Draw regions')");
  const drawing = await tab();
  const q = await page();
  await q.call('Page.navigate', { url: drawing });
  await q.until(`${text('name')} === 'good' && window.osd?.world.getItemCount() > 0`, 'the slide in the viewer');
  await q.run("(() => { const r = document.getElementById('reviewer'); r.value = 'anna'; r.dispatchEvent(new Event('change')); document.activeElement.blur(); })()");
  await q.run('new Promise((r) => setTimeout(r, 1500))');
  await q.key('r');
  for (const [x, y] of [[500, 300], [700, 500]]) await q.click(x, y);
  await q.until(`${text('region-list')}.includes('mm²')`, 'a region');
  await p.front();
  await p.run("document.dispatchEvent(new Event('visibilitychange'))");
  await p.until(`/reviews.regions$/.test(${element('regions')}.value)`, 'the regions');
  assert.match(await p.run(text('list-note')), /Only the regions that were drawn/);
  // All of the slide takes long enough to be cancelled.
  await p.run(`${element('regions')}.value = ''`);
  await press(element('start'));
  await p.until(`${element('bar')}.position > 0 && ${element('bar')}.position < 1 && / of \\d+ .*per second/.test(${text('rate')})`, 'progress');
  const far = await p.run(`${element('bar')}.position`);
  await press(element('cancel'));
  await p.until(`${text('phase')}.startsWith('Cancelled.') && !${element('resume')}.hidden`, 'a cancelled run');
  assert.match(await p.run(text('slides')), /good.*interrupted/s);
  assert.equal(await p.run(`${element('cancel')}.hidden`), true);
  await press(element('resume'));
  await p.until(`${text('phase')} === 'Done.'`, 'the end of the run');
  await p.until(`!${element('results')}.hidden && !${element('view')}.disabled`, 'results');
  assert.match(await p.run(text('slides')), /good.*done/s);
  // The viewer opens in a tab of its own.
  await press(element('view'));
  assert.ok((await tab(drawing)).startsWith(new URL(url).origin));
  assert.deepEqual(troubles, []);
  console.log(JSON.stringify({ ok: true, far }));
} finally {
  await end();
}
process.exit(0);
