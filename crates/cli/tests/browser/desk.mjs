// Places a hotspot, draws regions, writes a comment and signs a case in headless Chromium, by mouse and by keys.
//
// usage: node --experimental-websocket desk.mjs URL CHROMIUM DOTS [SCREENSHOT.png]

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { judged, walked } from './axe.mjs';
import { start } from './chromium.mjs';

const [url, chromium, places, picture] = process.argv.slice(2);
const dots = JSON.parse(places);
const { page, end, troubles } = await start(chromium);
const text = (id) => `document.getElementById('${id}').textContent`;
const wait = (ms) => new Promise((r) => { setTimeout(r, ms); });

try {
  const a = await page();
  const shot = async (name) => {
    if (picture) writeFileSync(picture.replace(/(\.png)?$/, `-${name}.png`), Buffer.from(await a.screenshot(), 'base64'));
  };
  const desk = () => a.run("fetch('api/desk/0').then((r) => r.json())");
  const at = (x, y) => a.run(`(() => {
    const item = window.osd.world.getItemAt(0);
    const p = window.osd.viewport.pixelFromPoint(item.imageToViewportCoordinates(${x}, ${y}), true);
    const r = document.getElementById('osd').getBoundingClientRect();
    return [p.x + r.x, p.y + r.y];
  })()`);
  const press = (key, shift) => a.call('Input.dispatchKeyEvent', { type: 'keyDown', key, modifiers: shift ? 8 : 0 }).then(() => a.call('Input.dispatchKeyEvent', { type: 'keyUp', key }));

  await a.call('Page.navigate', { url });
  await a.until(`${text('name')} === 'dots' && ${text('numbers')}.startsWith('3 figures')`, 'the slide');
  await wait(1200);
  await judged(a, 'the viewer');
  const order = await walked(a, 'the viewer');
  for (const id of ['search', 'seg', 'preset', 'hotspot-move', 'polygon', 'reviewer', 'add', 'sign', 'order']) assert.ok(order.includes(id), `${id} is not reached by Tab`);
  await a.key('?');
  await judged(a, 'the list of keys');
  await a.key('Escape');
  await a.until("!document.getElementById('help').open", 'the list of keys is closed');

  // Enter ends the name: what follows is a key, not a letter of it.
  await a.run("document.getElementById('reviewer').focus()");
  await a.call('Input.insertText', { text: 'anna' });
  await a.key('Enter');
  await a.until("document.activeElement.id !== 'reviewer' && sessionStorage.getItem('mithras.reviewer') === '\"anna\"'", 'the name is entered');
  await a.key('1');
  await a.until(`${text('message')}.includes('Choose a candidate first')`);
  assert.equal(await a.run("document.getElementById('reviewer').value"), 'anna');

  // A comment on the chosen figure; it stands in the list and can be taken back.
  await a.key('n');
  await a.key('c');
  await a.call('Input.insertText', { text: 'plate seen from the side' });
  await a.key('Enter');
  await a.until(`${text('history')}.includes('plate seen from the side')`, 'a comment');
  await a.until(`${text('reviewed')} === '1 reviewed'`, 'a count of the comment');
  // A verdict keeps the comment, and a comment keeps verdict and morphology.
  const kept = () => a.run("fetch('api/reviews/0?reviewer=anna').then((r) => r.json()).then((r) => r.entries)");
  await a.key('m');
  await a.key('2');
  await a.until(`${text('history')}.includes('figure (metaphase)') && ${text('history')}.includes('plate seen from the side')`, 'a figure with its comment');
  await a.key('p');
  await a.until("document.getElementById('comment').value === 'plate seen from the side'", 'the comment in its box');
  await a.key('c');
  await a.run("document.getElementById('comment').select()");
  await a.call('Input.insertText', { text: 'plate seen from the side again' });
  await a.key('Enter');
  await a.until(`${text('history')}.includes('plate seen from the side again')`, 'a longer comment');
  const [first] = await kept();
  assert.deepEqual([first.verdict, first.morphology, first.comment], ['figure', 'metaphase', 'plate seen from the side again']);
  // Any earlier step is taken back, not the last alone.
  await a.key('n');
  await a.key('2');
  await a.until(`${text('reviewed')} === '2 reviewed'`, 'a second verdict');
  await a.run("document.querySelector('#review details').open = true");
  const back = async (word) => {
    await a.run(`document.querySelector('#history [aria-label^="take back ${word}"]').focus()`);
    await a.key('Enter');
  };
  await back('figure');
  await a.until(`!${text('history')}.includes('again') && ${text('history')}.includes('mimicker')`, 'the first step, one step back');
  const left = await kept();
  assert.deepEqual(left.map((e) => [e.verdict, e.comment ?? null]).sort(), [['figure', 'plate seen from the side'], ['mimicker', null]]);
  await back('mimicker');
  await a.until(`${text('reviewed')} === '1 reviewed' && !${text('history')}.includes('mimicker')`, 'the second step taken back');
  await a.run("document.querySelector('#review details').open = false; document.activeElement.blur()");

  // The densest places by the paper's rule: one, since the slide is smaller than a square.
  assert.equal(await a.run("document.querySelectorAll('#proposals button').length"), 1);
  assert.match(await a.run(text('hotspot-count')), /^3 figures in 0\.341 mm² on the slide \(the rule has 2 mm²\), the densest place$/);
  await shot('hotspot');
  // Three that do not overlap, by a rule of her own; each is shown at a press.
  await a.run("(() => { const f = document.getElementById('field-mm2'); f.value = 0.05; f.dispatchEvent(new Event('change')); })()");
  await a.until("document.querySelectorAll('#proposals button').length === 3", 'three places');
  assert.deepEqual(await a.run("[...document.querySelectorAll('#proposals button')].map((b) => b.textContent)"), ['1: 1', '2: 1', '3: 1']);
  await a.run("document.querySelectorAll('#proposals button')[2].focus()");
  await a.key('Enter');
  await a.until("document.querySelectorAll('#proposals button')[2].getAttribute('aria-pressed') === 'true'", 'the third place');
  // Fields apart: as many circles of their own.
  await a.run("(() => { for (const [id, v] of [['shape', 'circle'], ['fields', 2]]) document.getElementById(id).value = v; const c = document.getElementById('apart'); c.checked = true; c.dispatchEvent(new Event('change')); })()");
  await a.until(`${text('hotspot-count')} === '2 figures in 0.1 mm², the densest place'`, 'two fields apart');
  // Fewer than asked for, where no figure is left to centre one on: nothing of them is off the slide.
  await a.run("(() => { const f = document.getElementById('fields'); f.value = 10; f.dispatchEvent(new Event('change')); })()");
  await a.until(`/^3 figures in 0\\.1[0-9]* mm².*, 3 of 10 fields, the densest place$/.test(${text('hotspot-count')})`, 'three of ten fields');
  // Smaller ones: the count follows. Moved by keys, put back by Escape.
  await a.run("(() => { const s = document.getElementById('preset'); s.value = 'melanoma'; s.dispatchEvent(new Event('change')); })()");
  await a.until(`/on the slide .the rule has 1 mm².,? the densest place/.test(${text('hotspot-count')})`, 'another rule');
  const before = await a.run(text('hotspot-count'));
  await a.key('0');
  await wait(1200);
  await a.run("document.activeElement.blur()");
  await a.key('g');
  for (let i = 0; i < 8; i += 1) await press('ArrowDown', true);
  await a.until(`/placed by hand/.test(${text('hotspot-count')})`, 'moved by keys');
  assert.match(await a.run(text('hotspot-count')), /^[0-3] figures? in 0\.[0-9]+ mm² on the slide \(the rule has 1 mm²\), placed by hand$/);
  await press('Escape');
  await a.until(`${text('hotspot-count')} === ${JSON.stringify(before)}`, 'put back');

  // Dragged by the mouse; Enter keeps it.
  await a.key('g');
  await wait(300);
  const [x, y] = await at(...dots[0]);
  const mouse = (type, px, py) => a.call('Input.dispatchMouseEvent', { type, x: px, y: py, button: 'left', buttons: 1, clickCount: 1 });
  await mouse('mousePressed', x + 5, y + 5);
  for (let i = 1; i <= 10; i += 1) await mouse('mouseMoved', x + 5 + 4 * i, y + 5 + 3 * i);
  await mouse('mouseReleased', x + 45, y + 35);
  await a.until(`/placed by hand/.test(${text('hotspot-count')})`, 'dragged');
  // The count by her hotspot is in the page's head, next to that of the densest square.
  assert.match(await a.run(text('numbers')), / · hotspot 3 in .* · placed by hand [0-3] in 0\.[0-9]+ mm² on the slide/);
  await a.key('Enter');
  await a.until(`${text('hotspot-kept')}.startsWith('kept by anna')`, 'a kept hotspot');
  const { hotspot } = await desk();
  assert.deepEqual([hotspot.preset, hotspot.shape, hotspot.fields, hotspot.field_mm2], ['melanoma', 'circle', 1, 1]);
  assert.equal(hotspot.centres_px.length, 1);
  // Off every dot and onto one: none and one figure, and what is kept is where the mouse let go.
  await a.run("(() => { const f = document.getElementById('field-mm2'); f.value = 0.05; f.dispatchEvent(new Event('change')); const s = document.getElementById('shape'); s.value = 'square'; s.dispatchEvent(new Event('change')); document.activeElement.blur(); })()");
  await a.until(`${text('hotspot-count')} === '1 figure in 0.05 mm², the densest place'`, 'a small square');
  await a.key('g');
  await wait(300);
  const drag = async (from, to) => {
    const [[x0, y0], [x1, y1]] = [await at(...from), await at(...to)];
    await mouse('mousePressed', x0, y0);
    for (let i = 1; i <= 20; i += 1) await mouse('mouseMoved', x0 + (i * (x1 - x0)) / 20, y0 + (i * (y1 - y0)) / 20);
    await mouse('mouseReleased', x1, y1);
  };
  const free = [1300, 850];
  await drag(dots[0], free);
  await a.until(`${text('hotspot-count')} === '0 figures in 0.05 mm², placed by hand'`, 'dragged off every dot');
  await drag(free, dots[2]);
  await a.until(`${text('hotspot-count')} === '1 figure in 0.05 mm², placed by hand'`, 'dragged onto a dot');
  await a.key('Enter');
  await a.until(`${text('hotspot-kept')}.startsWith('kept by anna')`, 'the dragged hotspot is kept');
  for (let i = 0; i < 100 && (await desk()).hotspot.field_mm2 !== 0.05; i += 1) await wait(50);
  const [[cx, cy]] = (await desk()).hotspot.centres_px;
  assert.ok(Math.hypot(cx - dots[2][0], cy - dots[2][1]) < 25, `let go at ${dots[2]}, kept at ${cx}, ${cy}`);
  // Taken back, the densest place is the hotspot again; kept once more.
  await a.run("document.getElementById('hotspot-drop').focus()");
  await a.key('Enter');
  await a.until(`${text('hotspot-kept')} === '' && /the densest place/.test(${text('hotspot-count')})`, 'a hotspot taken back');
  assert.equal((await desk()).hotspot, null);
  await a.call('Page.reload');
  await a.until(`${text('name')} === 'dots' && ${text('numbers')} !== ''`, 'the page again');
  // The link of the page leads to the candidate that was looked at.
  await wait(800);
  await a.key('0');
  await wait(1200);
  await a.run("(() => { const s = document.getElementById('preset'); s.value = 'melanoma'; s.dispatchEvent(new Event('change')); })()");
  await a.run("document.activeElement.blur()");
  await a.key('g');
  for (let i = 0; i < 2; i += 1) await press('ArrowDown', true);
  await a.key('Enter');
  await a.until(`${text('hotspot-kept')}.startsWith('kept by anna')`, 'a hotspot kept by keys alone');

  // A rectangle around the first dot, and a triangle in it that is left out.
  await a.run("document.getElementById('region-name').value = 'front'");
  await a.key('r');
  for (const [dx, dy] of [[-300, -300], [300, 300]]) await a.click(...await at(dots[0][0] + dx, dots[0][1] + dy));
  await a.until(`${text('region-list')}.includes('front: ') && ${text('region-list')}.includes('1 figure')`, 'a rectangle');
  await wait(400);
  await a.run("document.getElementById('region-exclude').click(); document.activeElement.blur()");
  await a.key('o');
  for (const [dx, dy] of [[-60, -60], [60, -60], [200, 200], [0, 80]]) {
    await a.click(...await at(dots[0][0] + dx, dots[0][1] + dy));
    await wait(450);
  }
  await press('Backspace');
  await a.click(...await at(dots[0][0], dots[0][1] + 80));
  await wait(450);
  await press('Enter');
  await a.until(`${text('region-list')}.includes('left out')`, 'a polygon');
  const known = await desk();
  assert.deepEqual(known.drawn.map((r) => [r.name, r.exclude, r.ring.length]), [['front', false, 4], ['', true, 4]]);
  // 600 x 600 px at 0.25 um/px, to the pixel of the screen; the rest is less by what is left out.
  const close = (v, expected) => assert.ok(Math.abs(v - expected) < 0.1 * expected, `${v} is not ${expected}`);
  close(known.mm2[0], 0.0225);
  assert.ok(Math.abs(known.all_mm2 - (known.mm2[0] - known.mm2[1])) < 1e-9);
  assert.ok((await a.run(text('region-sum'))).includes(', 0 figures'), 'the dot is left out');
  await shot('regions');
  await judged(a, 'the viewer with a hotspot and regions');
  // Deleted, and that is taken back.
  await a.run("document.querySelectorAll('#region-list button')[1].click()");
  await a.until(`!${text('region-list')}.includes('left out')`);
  await a.run("document.getElementById('region-undo').click()");
  await a.until(`${text('region-list')}.includes('left out')`, 'regions taken back');

  // What is taken back is a change of this slide, not of the one before, and several of them.
  const names = () => a.run("[...document.querySelectorAll('#region-list li')].length");
  const rectangle = async (x0, y0, n) => {
    await a.key('r');
    await a.click(...await at(x0, y0));
    await wait(450);
    await a.click(...await at(x0 + 300, y0 + 300));
    await a.until(`document.querySelectorAll('#region-list li').length === ${n}`, `${n} regions`);
    await wait(450);
  };
  await a.run("document.activeElement.blur()");
  await a.key('j');
  await a.until(`${text('name')} === 'drawn' && document.querySelectorAll('#region-list li').length === 0`, 'the other slide');
  await wait(1200);
  await rectangle(600, 600, 1);
  await a.key('k');
  await a.until(`${text('name')} === 'dots' && document.querySelectorAll('#region-list li').length === 2`, 'the first slide again');
  await a.run("document.getElementById('region-undo').click()");
  await a.until(`${text('message')} === 'Nothing to take back'`, 'nothing to take back on a slide that was just opened');
  assert.deepEqual([await names(), (await desk()).drawn.length], [2, 2]);
  await a.run("document.activeElement.blur()");
  await a.key('j');
  await a.until(`${text('name')} === 'drawn' && document.querySelectorAll('#region-list li').length === 1`, 'its own region');
  await wait(1200);
  await rectangle(1200, 600, 2);
  await rectangle(1800, 600, 3);
  for (const left of [2, 1]) {
    await a.run("document.getElementById('region-undo').click()");
    await a.until(`document.querySelectorAll('#region-list li').length === ${left}`, `${left} left`);
  }
  await a.run("document.getElementById('region-undo').click()");
  await a.until(`${text('message')} === 'Nothing to take back'`, 'every change was taken back');
  assert.equal(await names(), 1);
  await a.run("document.activeElement.blur()");
  await a.key('k');
  await a.until(`${text('name')} === 'dots' && document.querySelectorAll('#region-list li').length === 2`, 'the first slide');

  // By keys alone: a rectangle under the cross, moved by the arrows, and a figure added there and deleted again.
  await a.run("document.activeElement.blur()");
  await a.key('0');
  await wait(1200);
  await a.key('r');
  await a.until("!document.getElementById('cross').hidden", 'the cross');
  await a.key(' ');
  for (const k of ['ArrowRight', 'ArrowDown', 'ArrowDown']) await a.key(k);
  await wait(900);
  await a.key(' ');
  await a.until("document.querySelectorAll('#region-list li').length === 3 && document.getElementById('cross').hidden", 'a rectangle by keys');
  const [, , byKeys] = (await desk()).drawn;
  const [p0, , p2] = byKeys.ring;
  const view = await a.run('(() => { const b = osd.viewport.viewportToImageRectangle(osd.viewport.getBounds(true)); return [b.width, b.height]; })()');
  close(p2[0] - p0[0], 0.1 * view[0]);
  close(p2[1] - p0[1], 0.2 * view[1]);
  await a.run("document.getElementById('region-undo').click()");
  await a.until("document.querySelectorAll('#region-list li').length === 2", 'taken back');
  await a.run("document.activeElement.blur()");
  await a.key('+');
  await a.key('ArrowLeft');
  await wait(900);
  await a.key(' ');
  await a.until(`${text('history')}.split('figure at').length === 2`, 'a figure added by keys');
  await a.key('z');
  await a.until(`!${text('history')}.includes('figure at')`, 'and taken back');
  // Escape gives up, and the arrows are the slide's again.
  await a.key('o');
  await a.key('Escape');
  await a.until("document.getElementById('cross').hidden", 'given up');

  // Signed, nothing can be changed; a reload shows it, with the hotspot, the name and the slide.
  await a.run("document.getElementById('sign').click()");
  await a.until(`${text('frozen')} === 'signed by anna, version 1'`, 'a signature');
  await a.key('n');
  await a.key('2');
  await a.until(`${text('message')}.includes('signed by anna')`, 'a refused change');
  await a.call('Page.reload');
  await a.until(`${text('frozen')} === 'signed by anna, version 1' && ${text('hotspot-kept')}.startsWith('kept by anna')`, 'the case after a reload');
  assert.equal(await a.run("document.getElementById('reviewer').value"), 'anna');
  assert.match(await a.run(text('hotspot-count')), / mm² on the slide \(the rule has 1 mm²\), placed by hand$/);
  // Opened again by its button, which asks why.
  assert.deepEqual((await desk()).changed, []);
  await a.run("document.getElementById('reopen').click()");
  await a.until(`${text('message')}.startsWith('Write why') && document.activeElement.id === 'reason'`, 'asked why');
  await a.call('Input.insertText', { text: 'one more look' });
  await judged(a, 'a signed case');
  await a.key('Enter');
  await a.until(`${text('frozen')} === '' && ${text('signatures')}.includes('opened again by anna')`, 'opened again');
  const open = await desk();
  assert.deepEqual(open.signatures.map((s) => [s.version, s.signed, s.reason ?? null]), [[1, true, null], [1, false, 'one more look']]);
  assert.equal(await a.run("document.getElementById('reason').offsetParent === null"), true);
  await a.run("document.getElementById('sign').click()");
  await a.until(`${text('frozen')} === 'signed by anna, version 2'`, 'the second version');
  assert.match(await a.run(text('signatures')), /version 1: anna.*opened again by anna.*one more look.*version 2: anna/s);
  await shot('signed');
  await a.call('Page.reload');
  await a.until(`${text('name')} === 'dots'`);
  await a.key('b');
  await a.until("document.body.classList.contains('blind')", 'blinded');
  await judged(a, 'the blinded viewer');
  await shot('blinded');

  // Everything that is used by a pointer is reached by the keyboard, and has a name.
  const unnamed = await a.run(`[...document.querySelectorAll('button, input, select, summary')].filter((e) => {
    const label = e.labels && [...e.labels].map((l) => l.textContent.trim()).join('');
    return e.offsetParent && e.tabIndex < 0 || !(label || e.textContent.trim() || e.getAttribute('aria-label') || e.querySelector('img[alt]'));
  }).map((e) => e.outerHTML)`);
  assert.deepEqual(unnamed, []);
  // The refused change is an answer of the server that a browser reports.
  assert.deepEqual(troubles.filter((t) => !/status of 409/.test(t)), []);
  console.log(JSON.stringify({ ok: true }));
} finally {
  await end();
}
process.exit(0);
