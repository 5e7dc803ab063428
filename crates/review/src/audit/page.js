// One picture after the other, by keyboard; every key stroke is saved before it is answered.

import { $, post, scaleBar } from './common.js';

const SQUARES = ['25', '50', '75'];
const BOX_KEYS = { q: '25', w: '50', e: '75', r: 'larger' };
const VERDICT_KEYS = { 1: 'confirmed', 2: 'not_confirmed', 3: 'unsure', y: 'confirmed', n: 'not_confirmed', u: 'unsure' };
const ASK = {
  mitotic_figure: 'Is the object at the centre a mitotic figure?',
  tumour: 'Is this tumour tissue?',
};
const state = { reviewer: '', question: 'mitotic_figure', items: [], entries: {}, log: '', at: 0, wide: false, squares: true };
let queue = Promise.resolve();
/** Names of pictures whose last verdict is not on disk yet. */
const unsaved = new Set();

const item = () => state.items[state.at];
const entry = () => state.entries[item().id];
const isFigure = () => state.question === 'mitotic_figure';
const address = (i) => `image/${state.items[i].id}.png`;

function complete({ id }) {
  const e = state.entries[id];
  return Boolean(e) && !(isFigure() && e.verdict === 'confirmed' && !e.box);
}

const left = () => state.items.filter((i) => !complete(i)).length;

function firstOpen(from) {
  for (let k = 0; k < state.items.length; k++) {
    const i = (from + k) % state.items.length;
    if (!complete(state.items[i])) return i;
  }
  return -1;
}

function page(name) {
  for (const id of ['who', 'desk', 'end']) $(id).hidden = id !== name;
}

function show() {
  page('desk');
  const e = entry();
  const [all, done] = [state.items.length, state.items.length - left()];
  if ($('crop').getAttribute('src') !== address(state.at)) $('crop').src = address(state.at);
  $('place').textContent = `${state.at + 1} of ${all}`;
  $('bar').max = all;
  $('bar').value = done;
  $('done').textContent = done === all ? 'all done' : `${done} done`;
  $('ask').textContent = ASK[state.question];
  $('size').hidden = !isFigure() || !e || e.verdict !== 'confirmed';
  $('other').hidden = !isFigure() || !e;
  const press = (b, on) => b.setAttribute('aria-pressed', String(on));
  for (const b of document.querySelectorAll('[data-verdict]')) press(b, Boolean(e) && e.verdict === b.dataset.verdict);
  for (const b of document.querySelectorAll('[data-box]')) {
    press(b, Boolean(e) && e.box === b.dataset.box);
    b.lastElementChild.textContent = b.dataset.box === 'larger' ? 'Larger' : square(b.dataset.box);
  }
  press($('elsewhere'), Boolean(e) && e.elsewhere === true);
  press($('squared'), state.squares);
  $('wider').hidden = !item().close;
  $('wider').lastElementChild.textContent = state.wide ? 'Closer' : 'Wider';
  picture();
  if (state.at + 1 < all) new Image().src = address(state.at + 1);
}

/** A square's side in px and, where they are known, um. */
function square(px) {
  const { mpp } = item();
  return mpp ? `${px} px, ${(px * mpp).toFixed(1)} µm` : `${px} px`;
}

/** Picture, squares and scale bar at the size that is shown. */
function picture() {
  const [img, frame] = [$('crop'), $('frame').clientWidth];
  const whole = Math.max(img.naturalWidth, img.naturalHeight);
  if (!whole || !img.complete) return;
  const { close, mpp } = item();
  const shown = close && !state.wide ? Math.min(close, whole) : whole;
  const perPx = frame / shown;
  img.style.width = `${img.naturalWidth * perPx}px`;
  scaleBar($('scale'), mpp ? mpp / perPx : null, frame / 3);
  const e = entry();
  const asked = isFigure() && state.squares && e && e.verdict === 'confirmed';
  const drawn = asked ? SQUARES.map((px) => [px, e.box === px ? 'is' : '', state.wide ? '' : square(px)]) : [];
  if (close && state.wide) drawn.push([close, 'crop', '']);
  $('squares').replaceChildren(...drawn.map(([px, kind, text]) => {
    const box = document.createElement('div');
    box.className = kind;
    box.dataset.px = px;
    box.style.width = box.style.height = `${px * perPx}px`;
    if (text) box.append(Object.assign(document.createElement('span'), { textContent: text }));
    return box;
  }));
}

/** The end is shown once all is on disk; what could not be saved is shown instead. */
function finish() {
  queue = queue.then(() => {
    const lost = state.items.findIndex((i) => unsaved.has(i.id));
    if (lost >= 0) {
      const why = $('error').textContent;
      go(lost);
      $('error').textContent = why;
      return;
    }
    const count = (v) => Object.values(state.entries).filter((e) => e.verdict === v).length;
    const n = state.items.length;
    $('sum').textContent = `${n === 1 ? 'The picture is' : `All ${n} pictures are`} reviewed by ${state.reviewer}: ${count('confirmed')} yes, ${count('not_confirmed')} no, ${count('unsure')} unsure.`;
    $('log').textContent = state.log;
    $('copy').href = `log/${encodeURIComponent(state.reviewer)}.jsonl`;
    page('end');
  });
  return queue;
}

function save(change) {
  const { id } = item();
  if (change) state.entries[id] = change; else delete state.entries[id];
  show();
  $('saved').textContent = 'saving';
  unsaved.add(id);
  queue = queue
    .then(() => post('set', { reviewer: state.reviewer, item: id, entry: change || null }))
    .then(() => {
      unsaved.delete(id);
      $('saved').textContent = 'saved';
      if (!unsaved.size) $('error').textContent = '';
    })
    .catch((e) => { $('saved').textContent = ''; $('error').textContent = `Not saved: ${e.message}`; });
  return queue;
}

function verdict(v) {
  const old = entry() || {};
  const change = { verdict: v, elsewhere: old.elsewhere === true };
  if (v === 'confirmed' && old.box) change.box = old.box;
  return save(change);
}

function box(size) {
  const e = entry();
  return isFigure() && e && e.verdict === 'confirmed' ? save({ ...e, box: size }) : null;
}

function elsewhere() {
  const e = entry();
  return isFigure() && e ? save({ ...e, elsewhere: !e.elsewhere }) : null;
}

function go(to) {
  state.at = to;
  $('saved').textContent = '';
  show();
}

/** Behind the last picture is the end, or what is still open. */
function move(step) {
  const to = state.at + step;
  if (to >= 0 && to < state.items.length) return go(to);
  if (to < 0) return null;
  return left() ? jump() : finish();
}

function jump() {
  const i = firstOpen(state.at);
  return i < 0 ? finish() : go(i);
}

function undo() {
  queue = queue
    .then(() => post('undo', { reviewer: state.reviewer }))
    .then((back) => {
      if (!back.item) { $('saved').textContent = 'nothing'; return; }
      if (back.entry) state.entries[back.item] = back.entry; else delete state.entries[back.item];
      go(state.items.findIndex((i) => i.id === back.item));
      $('saved').textContent = 'undone';
    })
    .catch((e) => { $('error').textContent = e.message; });
  return queue;
}

const wider = () => { state.wide = !state.wide && Boolean(item().close); show(); };
const squares = () => { state.squares = !state.squares; show(); };

$('crop').addEventListener('load', picture);
window.addEventListener('resize', () => { if (!$('desk').hidden) picture(); });
$('verdicts').addEventListener('click', (ev) => {
  const b = ev.target.closest('[data-verdict]');
  if (b) verdict(b.dataset.verdict);
});
$('boxes').addEventListener('click', (ev) => {
  const b = ev.target.closest('[data-box]');
  if (b) box(b.dataset.box);
});
const CLICKS = {
  elsewhere, undo, jump, wider, squared: squares, back: () => move(-1), next: () => move(1),
  again: () => go(state.items.length - 1), first: () => go(0),
};
for (const [id, act] of Object.entries(CLICKS)) $(id).addEventListener('click', act);

const KEYS = {
  f: elsewhere, z: undo, g: jump, c: wider, b: squares, enter: () => move(1), arrowright: () => move(1), arrowleft: () => move(-1),
};
const END_KEYS = { arrowleft: CLICKS.again, h: CLICKS.first, z: undo };
document.addEventListener('keydown', (ev) => {
  if (!$('who').hidden || ev.ctrlKey || ev.metaKey || ev.altKey || ev.repeat) return;
  const key = ev.key.toLowerCase();
  const at = $('desk').hidden ? END_KEYS[key]
    : (VERDICT_KEYS[key] && (() => verdict(VERDICT_KEYS[key]))) || (BOX_KEYS[key] && (() => box(BOX_KEYS[key]))) || KEYS[key];
  if (at) { ev.preventDefault(); at(); }
});

$('who').addEventListener('submit', async (ev) => {
  ev.preventDefault();
  const reviewer = $('name').value.trim();
  try {
    Object.assign(state, await post('open', { reviewer }), { reviewer });
    document.activeElement.blur();
    if (left()) go(Math.max(0, firstOpen(0))); else finish();
  } catch (e) {
    $('who-error').textContent = e.message;
    $('name').focus();
  }
});
