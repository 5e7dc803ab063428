// Answers that arrive late, a slide without its file, and two reviewers one after the other, in headless Chromium.
//
// usage: node --experimental-websocket together.mjs URL CHROMIUM
//
// The run: `dots` (3 figures), `doze`, whose file is missing, and `drawn` (12 figures).

import assert from 'node:assert/strict';
import { start } from './chromium.mjs';

const [url, chromium] = process.argv.slice(2);
const { page, end, troubles } = await start(chromium);
const text = (id) => `document.getElementById('${id}').textContent`;
const shownAs = (name, start) => `${text('name')} === '${name}' && ${text('numbers')}.startsWith('${start}')`;
const reviewer = (name) => `(() => { const r = document.getElementById('reviewer'); r.value = '${name}'; r.dispatchEvent(new Event('change')); r.blur(); })()`;
const wait = (ms) => new Promise((r) => { setTimeout(r, ms); });

try {
  const a = await page();
  await a.call('Page.navigate', { url });
  await a.until(shownAs('dots', '3 figures'), 'the first slide');
  // Answers that the page waits for longer, by a part of their path; `refused` ones never come.
  await a.run(`(() => {
    const real = window.fetch;
    window.late = {};
    window.refused = '';
    window.fetch = async (path, more) => {
      if (window.refused && path.startsWith(window.refused)) return new Response(JSON.stringify({ error: 'the run has changed' }), { status: 409 });
      const answer = await real(path, more);
      const ms = Object.entries(window.late).filter(([part]) => path.startsWith(part)).map(([, v]) => v)[0];
      if (ms) await new Promise((r) => { setTimeout(r, ms); });
      return answer;
    };
  })()`);

  // The slide without its file is passed over, in both directions.
  await a.key('j');
  await a.until(shownAs('drawn', '12 figures'), 'the slide behind the missing one');
  await a.key('j');
  await wait(300);
  assert.equal(await a.run(text('name')), 'drawn');
  await a.key('k');
  await a.until(shownAs('dots', '3 figures'), 'the first slide again');

  // An answer about a slide that is no longer shown is not taken for this one's.
  for (const part of ['api/slide/2', 'api/desk/2', 'api/reviews/2']) {
    await a.run(`window.late = { '${part}': 700 }`);
    await a.key('j');
    await a.until(`${text('name')} === 'drawn'`);
    await a.key('k');
    await a.until(shownAs('dots', '3 figures'), 'the slide of now');
    await wait(1000);
    assert.ok(await a.run(shownAs('dots', '3 figures')), `${part}: ${await a.run(text('numbers'))}`);
    assert.equal(await a.run("document.querySelectorAll('#gallery img').length"), 3, part);
  }
  await a.run('window.late = {}');

  // What one reviewer gave is hers, however late it is sent.
  const kept = (who) => a.run(`fetch('api/reviews/0?reviewer=${who}').then((r) => r.json()).then((r) => r.entries.length)`);
  await a.run(reviewer('anna'));
  await wait(300);
  await a.run("window.late = { 'api/review': 500 }");
  await a.key('n');
  for (const k of ['1', '1', '2', 'z']) await a.key(k);
  await a.run(reviewer('bert'));
  assert.equal(await a.run(text('reviewed')), '0 reviewed', 'nothing of the reviewer before');
  await wait(2500);
  await a.run('window.late = {}');
  await a.until(`${text('reviewed')} === '0 reviewed' && ${text('history')} === ''`, 'nothing by the second reviewer');
  assert.deepEqual([await kept('anna'), await kept('bert')], [2, 0]);

  // Regions that another window saved meanwhile are shown, not replaced.
  const ring = [[100, 100], [400, 100], [400, 400]];
  await a.run(`fetch('api/regions', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '${JSON.stringify({ reviewer: 'anna', slide: 0, regions: [{ name: 'of anna', class: '', exclude: false, ring }] })}' })`);
  await a.key('0');
  await wait(1200);
  const rectangle = async () => {
    await a.key('r');
    await a.key(' ');
    for (const k of ['ArrowRight', 'ArrowDown']) await a.key(k);
    await wait(900);
    await a.key(' ');
  };
  await rectangle();
  await a.until(`${text('message')}.includes('anna changed the regions') && ${text('region-list')}.includes('of anna')`, 'regions of another window');
  assert.equal(await a.run("document.querySelectorAll('#region-list li').length"), 1);
  await rectangle();
  await a.until("document.querySelectorAll('#region-list li').length === 2", 'drawn again');

  // A slide that the server refuses leaves nothing of the one before, and cannot be signed.
  await a.run("window.refused = 'api/slide/2'");
  await a.key('j');
  await a.until(`${text('name')} === 'drawn' && ${text('numbers')} === 'cannot be shown: the run has changed'`, 'a refused slide');
  const left = "['gallery', 'history', 'region-list', 'signatures', 'proposals'].map((id) => document.getElementById(id).childElementCount).join()";
  assert.equal(await a.run(left), '0,0,0,0,0');
  await a.run("document.getElementById('sign').click()");
  await a.until(`${text('message')}.startsWith('This slide is not shown')`, 'a refused signature');
  for (const k of ['n', '1', 'g', 'z', '0']) await a.key(k);
  assert.deepEqual(await a.run("fetch('api/desk/2').then((r) => r.json()).then((r) => r.signatures)"), []);
  await a.key('k');
  await a.until(shownAs('dots', '3 figures'), 'the slide before');
  // The refused regions are an answer of the server that a browser reports.
  assert.deepEqual(troubles.filter((t) => !/status of 409/.test(t)), []);
  console.log(JSON.stringify({ ok: true }));
} finally {
  await end();
}
process.exit(0);
