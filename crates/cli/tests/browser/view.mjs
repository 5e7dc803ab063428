// Looks at a run and reviews it in headless Chromium, as a person with a keyboard would.
//
// usage: node --experimental-websocket view.mjs URL CHROMIUM DOTS [SCREENSHOT.png]
//
// The run: `dots` (black squares of 10 px on white, each an accepted figure) and `drawn`.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { judged } from './axe.mjs';
import { start } from './chromium.mjs';

const [url, chromium, places, picture] = process.argv.slice(2);
const dots = JSON.parse(places);
const { page, end, troubles } = await start(chromium);

const text = (id) => `document.getElementById('${id}').textContent`;
const numbers = (start) => `${text('numbers')}.startsWith('${start}')`;
const shownAs = (name, start) => `${text('name')} === '${name}' && ${numbers(start)}`;
const slide = (id, value) => `(() => { const s = document.getElementById('${id}'); s.value = ${value}; s.dispatchEvent(new Event('input')); })()`;
const reviewer = (name) => `(() => { const r = document.getElementById('reviewer'); r.value = '${name}'; r.dispatchEvent(new Event('change')); r.blur(); })()`;
const reviewed = (n) => `${text('reviewed')} === '${n} reviewed'`;

/** Pixels of PNGs, by a page that may load anything. */
async function differ(blank, first, second) {
  return blank.run(`(async () => {
    const pixels = async (data) => {
      const bitmap = await createImageBitmap(await (await fetch('data:image/png;base64,' + data)).blob());
      const pen = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
      pen.drawImage(bitmap, 0, 0);
      return pen.getImageData(0, 0, bitmap.width, bitmap.height);
    };
    const [a, b] = [await pixels(${JSON.stringify(first)}), await pixels(${JSON.stringify(second)})];
    let [n, x, y, x0, y0, x1, y1, marked] = [0, 0, 0, 1e9, 1e9, -1, -1, 0];
    for (let j = 0; j < a.height; j++) for (let i = 0; i < a.width; i++) {
      const k = 4 * (j * a.width + i);
      const weight = 255 - (a.data[k] + a.data[k + 1] + a.data[k + 2]) / 3;
      if (weight > 100) { n += weight; x += weight * (i + 0.5); y += weight * (j + 0.5); }
      if (Math.abs(a.data[k] - b.data[k]) + Math.abs(a.data[k + 1] - b.data[k + 1]) + Math.abs(a.data[k + 2] - b.data[k + 2]) > 60) {
        marked += 1; x0 = Math.min(x0, i); x1 = Math.max(x1, i + 1); y0 = Math.min(y0, j); y1 = Math.max(y1, j + 1);
      }
    }
    return { dark: n / 255, dot: [x / n, y / n], marked, mark: [(x0 + x1) / 2, (y0 + y1) / 2], size: [x1 - x0, y1 - y0], shot: [a.width, a.height] };
  })()`);
}

const same = async (take) => {
  let before = null;
  for (let i = 0; i < 100; i += 1) {
    const now = await take();
    if (now === before) return now;
    before = now;
    await new Promise((r) => { setTimeout(r, 400); });
  }
  throw new Error('the picture never rests');
};

try {
  const a = await page();
  await a.call('Page.navigate', { url });
  await a.until(shownAs('dots', '3 figures · hotspot 3'), 'the first slide');
  assert.equal(await a.run("document.getElementById('moved').hidden"), true);

  // The wheel zooms where the pointer is, dragging moves the slide with it: the page says what lies below the pointer.
  const stage = await a.run("(() => { const r = document.getElementById('osd').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()");
  const mouse = (type, [x, y], more) => a.call('Input.dispatchMouseEvent', { type, x, y, ...more });
  const rest = () => new Promise((r) => { setTimeout(r, 1600); });
  const below = async ([x, y]) => {
    await mouse('mouseMoved', [x + 3, y]);
    await mouse('mouseMoved', [x, y]);
    await new Promise((r) => { setTimeout(r, 100); });
    return (await a.run(text('place'))).match(/-?\d+/g).slice(0, 2).map(Number);
  };
  const pixels = async () => ((await below([stage[0] + 100, stage[1]]))[0] - (await below(stage))[0]) / 100;
  await rest();
  const [far, here] = [await pixels(), await below(stage)];
  for (let i = 0; i < 4; i += 1) await mouse('mouseWheel', stage, { deltaX: 0, deltaY: -120 });
  await rest();
  const [near, zoomed] = [await pixels(), await below(stage)];
  assert.ok(near < 0.8 * far, `zoomed from ${far} to ${near} px`);
  assert.ok(Math.hypot(zoomed[0] - here[0], zoomed[1] - here[1]) <= 3 * far, `zoomed elsewhere: ${here} ${zoomed}`);
  await mouse('mousePressed', stage, { button: 'left', clickCount: 1 });
  for (let i = 1; i <= 12; i += 1) await mouse('mouseMoved', [stage[0] - 10 * i, stage[1] - 5 * i], { button: 'left', buttons: 1 });
  await mouse('mouseReleased', [stage[0] - 120, stage[1] - 60], { button: 'left', clickCount: 1 });
  await rest();
  const dragged = await below(stage);
  const off = [dragged[0] - zoomed[0] - 120 * near, dragged[1] - zoomed[1] - 60 * near];
  assert.ok(Math.hypot(...off) <= 20 * near, `dragged ${zoomed} to ${dragged} at ${near} px`);
  await a.call('Page.reload');
  await a.until(shownAs('dots', '3 figures · hotspot 3'), 'the slide after a reload');

  // Thresholds: the count follows, and the page says that it is not the run's point.
  await a.run(slide('cls', 0.95));
  await a.until(`${numbers('0 figures')} && !document.getElementById('moved').hidden`);
  // How to keep what was chosen as a run of its own.
  assert.match(await a.run(text('keep-command')), /mithras recount .*run --operating-point 0\.5,0\.95 --into DIR$/);
  // What misleads is said over the slide, with the numbers and in the list.
  assert.match(await a.run(text('caveats')), /under pen/);
  assert.match(await a.run(text('numbers')), /⚠ /);
  assert.match(await a.run("document.querySelector('#slides .warn').textContent"), /⚠ /);
  await a.run(slide('cls', 0.7));
  await a.until(`${numbers('3 figures')} && document.getElementById('moved').hidden`);

  // Without a name nothing is said.
  await a.key('n');
  await a.key('1');
  await a.until(`${text('message')}.includes('initials')`);
  await a.run(reviewer('anna'));
  await a.run('new Promise((r) => setTimeout(r, 300))');
  await a.key('p');
  await a.key('2');
  await a.until(`${numbers('2 figures · hotspot 2')} && ${reviewed(1)}`);
  await a.key('z');
  await a.until(`${numbers('3 figures')} && ${reviewed(0)}`);
  await a.key('2');
  await a.until(`${numbers('2 figures')} && ${reviewed(1)}`);
  await a.key('1');
  await a.until(reviewed(2));
  await a.key('z');
  await a.until(reviewed(1));

  // A figure that the network missed, where the next click is.
  await a.key('0');
  await a.run('new Promise((r) => setTimeout(r, 1500))');
  await a.key('+');
  const middle = await a.run("(() => { const r = document.getElementById('osd').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()");
  await a.click(...middle);
  await a.until(`${numbers('3 figures')} && ${reviewed(2)}`, 'an added figure');

  // It is deleted like any other, and that is taken back like any other word.
  await a.run('new Promise((r) => setTimeout(r, 700))');
  await a.click(...middle);
  await a.run('new Promise((r) => setTimeout(r, 300))');
  await a.key('x');
  await a.until(`${numbers('2 figures')} && ${reviewed(1)}`, 'a deleted figure');
  await a.key('z');
  await a.until(`${numbers('3 figures')} && ${reviewed(2)}`, 'a figure that is there again');

  // Closing the page loses nothing; a second window sees the same.
  const b = await page();
  for (const p of [a, b]) {
    await p.front();
    await p.call('Page.navigate', { url: 'about:blank' });
    await p.call('Page.navigate', { url });
    await p.until(shownAs('dots', '3 figures'));
    await p.run(reviewer('anna'));
    await p.until(reviewed(2));
    assert.equal(await p.run(text('numbers')).then((t) => t.startsWith('3 figures')), true);
  }
  await b.run(reviewer('bert'));
  await b.until(reviewed(0));

  // Where reviewers differ comes first: anna against the network, then bert against anna.
  await b.run("(() => { const o = document.getElementById('order'); o.value = 'differ'; o.dispatchEvent(new Event('change')); })()");
  await b.until(`${text('agreement')}.includes('no two reviewers')`);
  await b.key('n');
  await b.key('1');
  await b.until(`${text('agreement')}.includes('anna and bert: 0 of 1 alike, kappa 0.00')`, 'the agreement');
  // Where they differ is listed, both verdicts side by side, and settled; the decision holds until a verdict changes.
  await b.until(`${text('differ-sum')} === 'Disagreements: 1 to settle, 0 settled'`, 'a disagreement');
  assert.match(await b.run(text('disagreements')), /anna: mimicker · bert: figure/);
  await judged(b, 'the viewer with a disagreement');
  const press = async (label) => {
    await b.run(`document.querySelector('#disagreements [aria-label^="${label}"]').focus()`);
    await b.key('Enter');
  };
  await press('settle as mimicker');
  await b.until(`${text('differ-sum')} === 'Disagreements: 0 to settle, 1 settled'`, 'a decision');
  assert.match(await b.run(text('disagreements')), /settled as mimicker by bert, 20\d\d-/);
  await judged(b, 'the viewer with a decision', ['light']);
  await press('open the question again');
  await b.until(`${text('differ-sum')} === 'Disagreements: 1 to settle, 0 settled'`, 'an open question');
  await press('settle as figure');
  await b.until(`${text('differ-sum')} === 'Disagreements: 0 to settle, 1 settled'`, 'another decision');
  await b.run('document.activeElement.blur()');
  await b.key('b');
  await b.until("document.querySelector('[value=differ]').disabled && document.getElementById('agreement').textContent === ''", 'nothing of others when blinded');

  // Blinded, nothing of the network is seen: no count, no order by scores, no thresholds; a reload does not forget it.
  const order = () => b.run("[...document.querySelectorAll('#gallery img')].map((i) => i.alt).join()");
  const blindly = await order();
  await b.call('Page.reload');
  await b.until(`${text('name')} === 'dots' && document.getElementById('blind').checked && ${reviewed(1)}`, 'still blinded, and still bert');
  assert.equal(await b.run(text('numbers')), '');
  assert.equal(await order(), blindly, 'the order is the same every time');
  assert.equal(await b.run("getComputedStyle(document.getElementById('thresholds')).display"), 'none');
  assert.equal(await b.run("[...document.querySelectorAll('#slides small:not(.warn)')].map((s) => s.textContent).join('')"), '');
  assert.ok(!/0\.\d\d/.test(await b.run(text('gallery'))), 'no score in the gallery');
  await b.key('b');
  await b.until(numbers('3 figures'));

  // A deep link leads to its place, and the mark lies around the dot, not beside it.
  const blank = await page();
  for (const [x, y] of dots) {
    await b.front();
    await b.call('Page.navigate', { url: 'about:blank' });
    await b.call('Page.navigate', { url: `${url}#slide=dots&x=${x}&y=${y}` });
    await b.until(shownAs('dots', '3 figures'));
    for (const box of ['hotspot', 'tissue']) await b.run(`document.querySelector('[data-layer=${box}]').click()`);
    const stage = await b.run("(() => { const r = document.getElementById('osd').getBoundingClientRect(); return { x: r.x, y: r.y, width: r.width, height: r.height }; })()");
    // A square of the stage's middle, without scale bar, place and overview.
    const clip = { x: Math.round(stage.x + stage.width / 2) - 200, y: Math.round(stage.y + stage.height / 2) - 200, width: 400, height: 400 };
    const shot = () => b.screenshot(clip);
    const wait = () => new Promise((r) => { setTimeout(r, 1500); });
    await wait();
    const marked = await same(shot);
    if (picture) writeFileSync(picture, Buffer.from(await b.screenshot(), 'base64'));
    await b.key('h');
    await wait();
    const plain = await same(shot);
    const found = await differ(blank, plain, marked);
    const seen = JSON.stringify({ x, y, ...found });
    assert.ok(found.dark > 50, `no dot: ${seen}`);
    assert.ok(found.marked > 100, `no mark: ${seen}`);
    for (const k of [0, 1]) {
      assert.ok(Math.abs(found.dot[k] - 200) <= 2, `the link leads elsewhere: ${seen}`);
      // Less than a pixel of the slide, which is 1.6 here.
      assert.ok(Math.abs(found.dot[k] - found.mark[k]) <= 1.5, `the mark is beside the dot: ${seen}`);
      assert.ok(found.size[k] < 300, seen);
    }
  }

  // The other slide, with its own numbers; one candidate outside the tissue never counts.
  await a.front();
  await a.key('j');
  await a.until(shownAs('drawn', '12 figures · hotspot 12'));
  await a.run(slide('cls', 0));
  await a.until(numbers('30 figures'));
  // A reload keeps the slide and its threshold, not the first slide or the run's point.
  await a.call('Page.reload');
  await a.until(shownAs('drawn', '30 figures'), 'the other slide and its threshold after a reload');
  assert.deepEqual(await a.run("[document.getElementById('cls').value, document.getElementById('moved').hidden]"), ['0', false]);
  await a.until(reviewed(0), 'the reviews of the slide');
  if (picture) writeFileSync(picture.replace(/(\.png)?$/, '-drawn.png'), Buffer.from(await a.screenshot(), 'base64'));

  // A morphology, by two keys.
  await a.key('n');
  await a.key('m');
  await a.key('6');
  await a.until(reviewed(1), 'a morphology');
  const said = await a.run("fetch('api/reviews/1?reviewer=anna').then((r) => r.json())");
  assert.deepEqual([said.entries[0].verdict, said.entries[0].morphology], ['atypical', 'multipolar']);

  // It was the dirt outside the tissue, first by its score: a figure now. Counts at other thresholds say so wherever they go.
  await a.run("(() => { const make = URL.createObjectURL; window.saved = ''; URL.createObjectURL = (blob) => { blob.text().then((t) => { window.saved = t; }); return make.call(URL, blob); }; })()");
  await a.run("document.getElementById('download').click()");
  await a.until('window.saved !== \'\'', 'a download');
  const table = (await a.run('window.saved')).trim().split('\n');
  assert.equal(table.length, 3);
  assert.ok(table[1].startsWith('dots,3,3,') && table[2].startsWith('drawn,31,31,'), table.join('|'));
  for (const line of table.slice(1)) assert.ok(/,0\.5,0,0\.5,0\.7,anna,"?not the run's operating point.*(under dirt|of a hotspot)/.test(line), line);
  assert.deepEqual(troubles, []);
  console.log(JSON.stringify({ ok: true }));
} finally {
  await end();
}
process.exit(0);
