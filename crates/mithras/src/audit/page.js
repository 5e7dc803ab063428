'use strict';
const $ = (id) => document.getElementById(id);
const BOX_KEYS = { q: '25', w: '50', e: '75', r: 'larger' };
const VERDICT_KEYS = { 1: 'confirmed', 2: 'not_confirmed', 3: 'unsure', y: 'confirmed', n: 'not_confirmed', u: 'unsure' };
const ASK = {
  mitotic_figure: 'Is the object at the centre a mitotic figure?',
  tumour: 'Is this tumour tissue?',
};
let reviewer = '';
let question = 'mitotic_figure';
let items = [];
let entries = {};
let at = 0;
let queue = Promise.resolve();

async function post(path, data) {
  const answer = await fetch(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(data),
  });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error || answer.statusText);
  return value;
}

function firstOpen(from) {
  for (let k = 0; k < items.length; k++) {
    const i = (from + k) % items.length;
    if (!complete(items[i])) return i;
  }
  return -1;
}

function complete(item) {
  const e = entries[item];
  return Boolean(e) && !(question === 'mitotic_figure' && e.verdict === 'confirmed' && !e.box);
}

function show() {
  const item = items[at];
  const e = entries[item];
  const done = items.filter(complete).length;
  $('crop').src = `/image/${item}.png`;
  $('place').textContent = `${at + 1} of ${items.length}`;
  $('bar').max = items.length;
  $('bar').value = done;
  $('done').textContent = done === items.length ? 'all done' : `${done} done`;
  $('ask').textContent = ASK[question];
  const figure = question === 'mitotic_figure';
  $('size').hidden = !figure || !e || e.verdict !== 'confirmed';
  $('other').hidden = !figure || !e;
  for (const b of document.querySelectorAll('[data-verdict]')) {
    b.setAttribute('aria-pressed', String(Boolean(e) && e.verdict === b.dataset.verdict));
  }
  for (const b of document.querySelectorAll('[data-box]')) {
    b.setAttribute('aria-pressed', String(Boolean(e) && e.box === b.dataset.box));
  }
  $('elsewhere').setAttribute('aria-pressed', String(Boolean(e) && e.elsewhere === true));
  square(e && e.verdict === 'confirmed' ? e.box : null);
  const after = new Image();
  if (items[at + 1]) after.src = `/image/${items[at + 1]}.png`;
}

function square(box) {
  const px = Number(box);
  const crop = $('crop').naturalWidth;
  $('square').hidden = !px || !crop;
  if (px && crop) {
    $('square').style.width = `${(100 * px) / crop}%`;
    $('square').style.height = `${(100 * px) / crop}%`;
  }
}

function save(item, entry) {
  if (entry) entries[item] = entry; else delete entries[item];
  show();
  $('saved').textContent = 'saving';
  queue = queue
    .then(() => post('/set', { reviewer, item, entry: entry || null }))
    .then(() => { $('saved').textContent = 'saved'; $('error').textContent = ''; })
    .catch((e) => { $('saved').textContent = ''; $('error').textContent = `Not saved: ${e.message}`; });
  return queue;
}

function verdict(v) {
  const old = entries[items[at]] || {};
  const entry = { verdict: v, elsewhere: old.elsewhere === true };
  if (v === 'confirmed' && old.box) entry.box = old.box;
  return save(items[at], entry);
}

function box(size) {
  const e = entries[items[at]];
  if (question === 'mitotic_figure' && e && e.verdict === 'confirmed') return save(items[at], { ...e, box: size });
}

function elsewhere() {
  const e = entries[items[at]];
  if (question === 'mitotic_figure' && e) return save(items[at], { ...e, elsewhere: !e.elsewhere });
}

function move(step) {
  const to = at + step;
  if (to >= 0 && to < items.length) { at = to; show(); }
}

function jump() {
  const i = firstOpen(at);
  if (i >= 0) { at = i; show(); }
}

function undo() {
  queue = queue
    .then(() => post('/undo', { reviewer }))
    .then(({ item, entry }) => {
      if (!item) { $('saved').textContent = 'nothing'; return; }
      if (entry) entries[item] = entry; else delete entries[item];
      at = items.indexOf(item);
      show();
      $('saved').textContent = 'undone';
    })
    .catch((e) => { $('error').textContent = e.message; });
  return queue;
}

$('crop').addEventListener('load', () => {
  const e = entries[items[at]];
  square(e && e.verdict === 'confirmed' ? e.box : null);
});
$('verdicts').addEventListener('click', (ev) => {
  const b = ev.target.closest('[data-verdict]');
  if (b) verdict(b.dataset.verdict);
});
$('boxes').addEventListener('click', (ev) => {
  const b = ev.target.closest('[data-box]');
  if (b) box(b.dataset.box);
});
$('elsewhere').addEventListener('click', elsewhere);
$('back').addEventListener('click', () => move(-1));
$('next').addEventListener('click', () => move(1));
$('undo').addEventListener('click', undo);
$('jump').addEventListener('click', jump);

document.addEventListener('keydown', (ev) => {
  if ($('desk').hidden || ev.ctrlKey || ev.metaKey || ev.altKey || ev.repeat) return;
  const key = ev.key.toLowerCase();
  const act = () => {
    if (VERDICT_KEYS[key]) return verdict(VERDICT_KEYS[key]);
    if (BOX_KEYS[key]) return box(BOX_KEYS[key]);
    if (key === 'f') return elsewhere();
    if (key === 'z') return undo();
    if (key === 'g') return jump();
    if (key === 'enter' || key === 'arrowright') return move(1);
    if (key === 'arrowleft') return move(-1);
    return null;
  };
  const known = VERDICT_KEYS[key] || BOX_KEYS[key] || ['f', 'z', 'g', 'enter', 'arrowright', 'arrowleft'].includes(key);
  if (known) { ev.preventDefault(); act(); }
});

$('who').addEventListener('submit', async (ev) => {
  ev.preventDefault();
  reviewer = $('name').value.trim();
  try {
    const state = await post('/open', { reviewer });
    ({ question, items, entries } = state);
    at = Math.max(0, firstOpen(0));
    $('who').hidden = true;
    $('desk').hidden = false;
    document.activeElement.blur();
    show();
  } catch (e) {
    $('who-error').textContent = e.message;
  }
});
