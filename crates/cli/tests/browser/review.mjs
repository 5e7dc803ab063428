// Reviews three pictures in headless Chromium, as a person with a keyboard would.
//
// usage: node --experimental-websocket review.mjs URL CHROMIUM [SCREENSHOT.png]
//
// Speaks the DevTools protocol itself, so that nothing has to be installed beside Node and Chromium.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [url, chromium, picture] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), 'review-'));
const browser = spawn(chromium, [
  '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-extensions',
  '--remote-debugging-port=0', `--user-data-dir=${profile}`, '--window-size=1280,860', 'about:blank',
], { stdio: ['ignore', 'ignore', 'pipe'] });

const endpoint = await new Promise((resolve, reject) => {
  let text = '';
  browser.stderr.on('data', (d) => {
    text += d;
    const found = text.match(/DevTools listening on (ws:\S+)/);
    if (found) resolve(found[1]);
  });
  browser.on('exit', () => reject(new Error(`Chromium ended: ${text}`)));
  setTimeout(() => reject(new Error(`Chromium does not answer: ${text}`)), 60000).unref();
});

const socket = new WebSocket(endpoint);
await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
let last = 0;
const waiting = new Map();
const listeners = [];
socket.onmessage = ({ data }) => {
  const m = JSON.parse(data);
  if (m.id && waiting.has(m.id)) {
    const { resolve, reject } = waiting.get(m.id);
    waiting.delete(m.id);
    if (m.error) reject(new Error(m.error.message)); else resolve(m.result);
  } else {
    listeners.forEach((f) => f(m));
  }
};
const send = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
  last += 1;
  waiting.set(last, { resolve, reject });
  socket.send(JSON.stringify({ id: last, method, params, sessionId }));
});

// Everything the browser received as text, and everything that went wrong.
const received = [];
const troubles = [];

async function page() {
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  const call = (method, params) => send(method, params, sessionId);
  const bodies = [];
  listeners.push((m) => {
    if (m.sessionId !== sessionId) return;
    if (m.method === 'Runtime.exceptionThrown') troubles.push(m.params.exceptionDetails.text);
    if (m.method === 'Log.entryAdded' && m.params.entry.level === 'error' && !/favicon/.test(m.params.entry.url || '')) {
      troubles.push(m.params.entry.text);
    }
    if (m.method === 'Network.responseReceived') {
      bodies.push(JSON.stringify(m.params.response.headers), m.params.response.url);
      if (!/image/.test(m.params.response.mimeType)) bodies.push(m.params.requestId);
    }
  });
  await Promise.all(['Page.enable', 'Runtime.enable', 'Network.enable', 'Log.enable'].map((m) => call(m)));
  const run = async (code) => {
    const r = await call('Runtime.evaluate', { expression: code, awaitPromise: true, returnByValue: true });
    if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text);
    return r.result.value;
  };
  const until = async (code, what) => {
    for (let i = 0; i < 200; i += 1) {
      if (await run(code)) return;
      await new Promise((r) => { setTimeout(r, 50); });
    }
    throw new Error(`never happened: ${what ?? code}\n${await run('document.body.innerText')}`);
  };
  const key = async (k) => {
    const text = k.length === 1 ? k : { Enter: '\r' }[k];
    await call('Input.dispatchKeyEvent', { type: 'keyDown', key: k, text, windowsVirtualKeyCode: k === 'Enter' ? 13 : undefined });
    await call('Input.dispatchKeyEvent', { type: 'keyUp', key: k });
  };
  const enter = async (name) => {
    await call('Page.navigate', { url });
    await until("document.readyState === 'complete' && document.activeElement.id === 'name'", 'the form');
    await call('Input.insertText', { text: name });
    await key('Enter');
    await until("!document.getElementById('desk').hidden && document.getElementById('crop').complete", 'the desk');
  };
  const collect = async () => {
    for (const b of bodies) {
      received.push(b);
      const body = await call('Network.getResponseBody', { requestId: b }).catch(() => null);
      if (body) received.push(body.body);
    }
    received.push(await run('document.documentElement.outerHTML'), await run('JSON.stringify({ items, entries, question })'));
  };
  return { call, run, until, key, enter, collect };
}

const text = (id) => `document.getElementById('${id}').textContent`;
const pressed = (q) => `document.querySelector('[${q}]').getAttribute('aria-pressed') === 'true'`;
const hidden = (id) => `document.getElementById('${id}').hidden`;
const saved = `${text('saved')} === 'saved'`;

try {
  const a = await page();
  await a.enter('anna');
  const total = await a.run('items.length');
  assert.ok(total >= 4, 'the package holds too few pictures');
  assert.equal(await a.run(text('place')), `1 of ${total}`);
  assert.equal(await a.run(hidden('size')), true);

  // Box and "elsewhere" mean nothing before a verdict.
  await a.key('w');
  assert.equal(await a.run('Object.keys(entries).length'), 0);

  await a.key('1');
  await a.until(saved);
  assert.equal(await a.run(pressed('data-verdict="confirmed"')), true);
  assert.equal(await a.run(hidden('size')), false);
  assert.equal(await a.run(text('done')), '0 done');
  await a.key('w');
  await a.until(`${pressed('data-box="50"')} && ${saved}`);
  assert.equal(await a.run(text('done')), '1 done');
  const share = await a.run("document.getElementById('square').getBoundingClientRect().width / document.getElementById('crop').getBoundingClientRect().width");
  const expected = await a.run("50 / document.getElementById('crop').naturalWidth");
  assert.ok(Math.abs(share - expected) < 0.01, `the square shows ${share}, not ${expected}`);
  if (picture) {
    const shot = await a.call('Page.captureScreenshot', { format: 'png' });
    writeFileSync(picture, Buffer.from(shot.data, 'base64'));
  }
  await a.key('Enter');
  await a.until(`${text('place')} === '2 of ${total}'`);
  assert.equal(await a.run(hidden('square')), true);
  await a.key('2');
  await a.key('f');
  await a.until(`${pressed('id="elsewhere"')} && ${saved}`);
  await a.key('ArrowRight');
  await a.key('3');
  await a.until(`${pressed('data-verdict="unsure"')} && ${saved}`);
  await a.key('z');
  await a.until(`${text('saved')} === 'undone'`);
  assert.equal(await a.run('Object.keys(entries).length'), 2);
  await a.collect();

  // Closing the page loses nothing; the first open picture comes up.
  await a.enter('anna');
  assert.equal(await a.run(text('place')), `3 of ${total}`);
  assert.equal(await a.run(text('done')), '2 done');
  const spot = await a.run("(() => { const r = document.querySelector('[data-verdict=unsure]').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()");
  for (const type of ['mousePressed', 'mouseReleased']) {
    await a.call('Input.dispatchMouseEvent', { type, x: spot[0], y: spot[1], button: 'left', clickCount: 1 });
  }
  await a.until(`${pressed('data-verdict="unsure"')} && ${saved}`);
  await a.key('ArrowLeft');
  await a.until(pressed('id="elsewhere"'));

  // A second reviewer starts from nothing.
  const b = await page();
  await b.enter('bert');
  assert.equal(await b.run(text('done')), '0 done');
  for (const k of ['1', 'e', 'Enter', '3', 'Enter', '3']) {
    await b.key(k);
    await new Promise((r) => { setTimeout(r, 30); });
  }
  await b.until(`Object.keys(entries).length === 3 && ${saved}`);
  await a.collect();
  await b.collect();

  for (const secret of ['mimicker', 's_seg', 's_cls', 'cohort', 'stratum', 'SECRET']) {
    assert.ok(!received.some((r) => r.includes(secret)), `\`${secret}\` reached the browser`);
  }
  assert.deepEqual(troubles, []);
  console.log(JSON.stringify({ ok: true, pictures: total, texts: received.length }));
} finally {
  const gone = new Promise((r) => { browser.on('exit', r); setTimeout(r, 10000); });
  await send('Browser.close').catch(() => browser.kill());
  await gone;
  // Children of the browser may still write for a moment; what they leave in the temporary folder proves nothing.
  try { rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }); } catch { /* left behind */ }
}
process.exit(0);
