// Reviews a package in headless Chromium, as two people with a keyboard would.
//
// usage: node --experimental-websocket review.mjs URL CHROMIUM [SCREENSHOTS]
//
// With a folder for SCREENSHOTS, what a person would look at is written there.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { judged, walked } from './axe.mjs';
import { start } from './chromium.mjs';

const [url, chromium, folder] = process.argv.slice(2);
const { page, end, troubles } = await start(chromium);
/** Everything the browser received as text. */
const received = [];

const text = (id) => `document.getElementById('${id}').textContent`;
const pressed = (q) => `document.querySelector('[${q}]').getAttribute('aria-pressed') === 'true'`;
const hidden = (id) => `document.getElementById('${id}').hidden`;
const saved = `${text('saved')} === 'saved'`;
const shown = "document.getElementById('crop').complete && document.getElementById('crop').naturalWidth > 0";
/** Width of something on the page, as a share of the frame. */
const share = (q) => `document.querySelector('${q}').getBoundingClientRect().width / document.getElementById('frame').clientWidth`;

async function shot(p, name) {
  if (folder) writeFileSync(join(folder, `${name}.png`), Buffer.from(await p.screenshot(), 'base64'));
}

async function reviewer() {
  const p = await page();
  const bodies = [];
  p.on('Network.responseReceived', ({ response, requestId }) => {
    received.push(JSON.stringify(response.headers), response.url);
    if (!/image/.test(response.mimeType)) bodies.push(requestId);
  });
  await p.call('Network.enable');
  const form = async () => {
    await p.call('Page.navigate', { url });
    await p.until("document.readyState === 'complete' && document.activeElement.id === 'name'", 'the form');
  };
  const say = async (name) => {
    await p.run("document.getElementById('name').value = ''");
    if (name) await p.call('Input.insertText', { text: name });
    await p.key('Enter');
  };
  const enter = async (name, then = 'desk') => {
    await form();
    await say(name);
    await p.until(`!${hidden(then)} && (${then === 'end'} || ${shown})`, then);
  };
  const collect = async () => {
    for (const requestId of bodies.splice(0)) {
      const body = await p.call('Network.getResponseBody', { requestId }).catch(() => null);
      if (body) received.push(body.body);
    }
    received.push(await p.run('document.documentElement.outerHTML'));
  };
  return { ...p, form, say, enter, collect };
}

try {
  const a = await reviewer();
  // Why initials are refused is said.
  await a.form();
  for (const [name, why] of [['', 'nothing was entered'], ['J\u00f6 M', '`\u00f6` and a space cannot be used'], ['x'.repeat(65), '65 characters are too many'], ['.a', 'a dot']]) {
    await a.say(name);
    await a.until(`${text('who-error')}.includes(${JSON.stringify(why)})`, why);
    assert.equal(await a.run(hidden('desk')), true);
  }
  await shot(a, 'refused');
  await judged(a, 'the form of the audit');
  await walked(a, 'the form of the audit');
  // The refusals are answers of the server that a browser reports.
  assert.ok(troubles.splice(0).every((t) => /status of 400/.test(t)));

  await a.enter('anna');
  const total = Number((await a.run(text('place'))).split(' of ')[1]);
  assert.ok(total >= 4, 'the package holds too few pictures');
  assert.equal(await a.run(text('place')), `1 of ${total}`);
  assert.equal(await a.run(hidden('size')), true);
  assert.match(await a.run("document.querySelector('#scale span').textContent"), /^\d+ µm$/);

  // Box and "elsewhere" mean nothing before a verdict.
  await a.key('w');
  await a.key('f');
  assert.equal(await a.run(`${pressed('data-box="50"')} || ${pressed('id="elsewhere"')} || ${text('saved')} !== ''`), false);

  await a.key('1');
  await a.until(saved);
  assert.equal(await a.run(pressed('data-verdict="confirmed"')), true);
  assert.equal(await a.run(hidden('size')), false);
  assert.equal(await a.run(text('done')), '0 done');
  await a.key('w');
  await a.until(`${pressed('data-box="50"')} && ${saved}`);
  assert.equal(await a.run(text('done')), '1 done');
  // All squares are drawn to scale, the chosen one marked.
  const [side, whole] = [128, 384];
  assert.equal(await a.run("document.getElementById('crop').naturalWidth"), whole);
  for (const px of [25, 50, 75]) {
    const drawn = await a.run(share(`[data-px="${px}"]`));
    assert.ok(Math.abs(drawn - px / side) < 0.01, `the square of ${px} px shows ${drawn} of ${side}`);
  }
  assert.equal(await a.run("document.querySelector('#squares .is').dataset.px"), '50');
  // So is the bar: 0.25 um/px.
  const bar = Number((await a.run("document.querySelector('#scale span').textContent")).split(' ')[0]);
  const long = await a.run(share('#scale i'));
  assert.ok(Math.abs(long - bar / 0.25 / side) < 0.01, `${bar} um are ${long} of the picture`);
  await shot(a, 'squares');
  await judged(a, 'a picture of the audit');
  await walked(a, 'a picture of the audit');
  // Wider: the same square on more tissue, and what was shown before as a frame.
  await a.key('c');
  await a.until(`Math.abs(${share('[data-px="50"]')} - 50 / ${whole}) < 0.005`, 'the wider view');
  assert.ok(Math.abs(await a.run(share('#squares .crop')) - side / whole) < 0.01);
  await shot(a, 'wide');
  await a.key('c');
  await a.key('b');
  assert.equal(await a.run("document.querySelectorAll('#squares div').length"), 0);
  await a.key('b');

  await a.key('Enter');
  await a.until(`${text('place')} === '2 of ${total}'`);
  assert.equal(await a.run("document.querySelectorAll('#squares div').length"), 0);
  await a.key('2');
  await a.key('f');
  await a.until(`${pressed('id="elsewhere"')} && ${saved}`);
  await a.key('ArrowRight');
  await a.key('3');
  await a.until(`${pressed('data-verdict="unsure"')} && ${saved}`);
  assert.equal(await a.run(text('done')), '3 done');
  await a.key('z');
  await a.until(`${text('saved')} === 'undone'`);
  assert.equal(await a.run(text('done')), '2 done');
  await a.collect();

  // Closing the page loses nothing; the first open picture comes up.
  await a.enter('anna');
  assert.equal(await a.run(text('place')), `3 of ${total}`);
  assert.equal(await a.run(text('done')), '2 done');
  const [x, y] = await a.run("(() => { const r = document.querySelector('[data-verdict=unsure]').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()");
  await a.click(x, y);
  await a.until(`${pressed('data-verdict="unsure"')} && ${saved}`);
  await a.key('ArrowLeft');
  await a.until(pressed('id="elsewhere"'));

  // A second reviewer starts from nothing, and comes to the end.
  const b = await reviewer();
  await b.enter('bert');
  assert.equal(await b.run(text('done')), '0 done');
  for (const k of ['1', 'e', 'Enter', '3', 'Enter', '3', 'Enter']) await b.key(k);
  for (let i = 3; i < total - 1; i += 1) for (const k of ['2', 'Enter']) await b.key(k);
  // Behind the last one lies what is open.
  await b.until(`${text('place')} === '${total} of ${total}'`);
  await b.key('Enter');
  assert.equal(await b.run(hidden('end')), true);
  await b.key('2');
  await b.until(saved);
  await b.key('Enter');
  await b.until(`!${hidden('end')}`);
  assert.equal(await b.run(text('sum')), `All ${total} pictures are reviewed by bert: 1 yes, ${total - 3} no, 2 unsure.`);
  assert.equal(await b.run(text('log')), 'reviews/bert.jsonl');
  const copy = await b.run("fetch(document.getElementById('copy').href).then((r) => r.text())");
  assert.equal(copy.trim().split('\n').length, total + 1);
  await shot(b, 'end');
  await judged(b, 'the end of the audit');
  await b.key('ArrowLeft');
  await b.until(`${hidden('end')} && ${text('place')} === '${total} of ${total}'`);
  // Who has finished finds the end again.
  await b.enter('bert', 'end');
  await b.key('h');
  await b.until(`${text('place')} === '1 of ${total}'`);
  await a.collect();
  await b.collect();

  const style = /<style>[^]*?<\/style>/g;
  for (const secret of ['mimicker', 's_seg', 's_cls', 'cohort', 'stratum', 'accepted', 'rejected', 'dots']) {
    assert.ok(!received.some((r) => r.replace(style, '').includes(secret)), `\`${secret}\` reached the browser`);
  }
  assert.deepEqual(troubles, []);
  console.log(JSON.stringify({ ok: true, pictures: total, texts: received.length }));
} finally {
  await end();
}
process.exit(0);
