// Headless Chromium by the DevTools protocol, so that nothing has to be installed beside Node and Chromium.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Starts a browser; `troubles` gathers whatever its pages complain about. */
export async function start(chromium) {
  const profile = mkdtempSync(join(tmpdir(), 'view-'));
  const browser = spawn(chromium, [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-extensions',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    // Two windows at once: the one behind goes on drawing, as it would on a second screen.
    '--disable-renderer-backgrounding', '--disable-background-timer-throttling', '--disable-backgrounding-occluded-windows',
    '--remote-debugging-port=0', `--user-data-dir=${profile}`, '--window-size=1400,900', 'about:blank',
  ], { stdio: ['ignore', 'ignore', 'pipe'] });
  const endpoint = await new Promise((resolve, reject) => {
    let text = '';
    browser.stderr.on('data', (d) => {
      text += d;
      const found = text.match(/DevTools listening on (ws:\S+)/);
      if (found) resolve(found[1]);
    });
    browser.on('exit', () => reject(new Error(`Chromium ended: ${text}`)));
    setTimeout(() => reject(new Error(`Chromium does not answer: ${text}`)), 120000).unref();
  });
  const socket = new WebSocket(endpoint);
  await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
  let last = 0;
  const waiting = new Map();
  const listeners = [];
  const troubles = [];
  socket.onmessage = ({ data }) => {
    const m = JSON.parse(data);
    if (m.id && waiting.has(m.id)) {
      const { resolve, reject } = waiting.get(m.id);
      waiting.delete(m.id);
      if (m.error) reject(new Error(m.error.message)); else resolve(m.result);
    } else listeners.forEach((f) => f(m));
  };
  const send = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
    last += 1;
    waiting.set(last, { resolve, reject });
    socket.send(JSON.stringify({ id: last, method, params, sessionId }));
  });

  async function page() {
    const { targetId } = await send('Target.createTarget', { url: 'about:blank', newWindow: true });
    const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
    const call = (method, params) => send(method, params, sessionId);
    listeners.push((m) => {
      if (m.sessionId !== sessionId) return;
      if (m.method === 'Runtime.exceptionThrown') troubles.push(m.params.exceptionDetails.exception?.description ?? m.params.exceptionDetails.text);
      if (m.method === 'Runtime.consoleAPICalled' && m.params.type === 'error') troubles.push(JSON.stringify(m.params.args));
      if (m.method === 'Log.entryAdded' && m.params.entry.level === 'error') {
        troubles.push(`${m.params.entry.text} ${m.params.entry.url || ''}`);
      }
    });
    await Promise.all(['Page.enable', 'Runtime.enable', 'Log.enable'].map((m) => call(m)));
    await call('Emulation.setFocusEmulationEnabled', { enabled: true });
    const on = (method, act) => listeners.push((m) => { if (m.sessionId === sessionId && m.method === method) act(m.params); });
    const front = () => call('Page.bringToFront');
    const run = async (code) => {
      const r = await call('Runtime.evaluate', { expression: code, awaitPromise: true, returnByValue: true });
      if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text);
      return r.result.value;
    };
    const until = async (code, what) => {
      for (let i = 0; i < 600; i += 1) {
        // A page that is still loading has not what is asked about.
        if (await run(code).catch(() => false)) return;
        await new Promise((r) => { setTimeout(r, 50); });
      }
      throw new Error(`never happened: ${what ?? code}\n${await run('document.body.innerText')}\n${troubles.join('\n')}`);
    };
    // Keys whose own action (the next field, a press of a button) a browser takes from their code.
    const codes = { Enter: [13, '\r'], Tab: [9], ' ': [32, ' '], Escape: [27], Backspace: [8], ArrowLeft: [37], ArrowUp: [38], ArrowRight: [39], ArrowDown: [40] };
    const key = async (k, { shift = false } = {}) => {
      const [code, text] = codes[k] ?? [undefined, k.length === 1 ? k : undefined];
      const all = { key: k, modifiers: shift ? 8 : 0, ...(code && { windowsVirtualKeyCode: code }) };
      await call('Input.dispatchKeyEvent', { type: 'keyDown', ...all, ...(text && { text }) });
      await call('Input.dispatchKeyEvent', { type: 'keyUp', ...all });
    };
    const click = async (x, y) => {
      await call('Input.dispatchMouseEvent', { type: 'mouseMoved', x, y });
      for (const type of ['mousePressed', 'mouseReleased']) {
        await call('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 });
      }
    };
    const screenshot = async (clip) => (await call('Page.captureScreenshot', { format: 'png', clip: clip && { ...clip, scale: 1 } })).data;
    return { call, on, front, run, until, key, click, screenshot };
  }

  async function end() {
    const gone = new Promise((r) => { browser.on('exit', r); setTimeout(r, 10000); });
    await send('Browser.close').catch(() => browser.kill());
    await gone;
    // Children of the browser may still write for a moment; what they leave in the temporary folder proves nothing.
    try { rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }); } catch { /* left behind */ }
  }
  return { page, end, troubles };
}
