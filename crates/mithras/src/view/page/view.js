// The page: one slide at a time, its candidates, thresholds and reviews.

import { $, get, post, scaleBar } from './common.js';
import { Figures, countsCsv, countsLine, density, hotspot, ordered } from './model.js';
import { Marks } from './marks.js';

const PAGE = 60;
const state = {
  index: null, slide: 0, detail: null, figures: null, point: { seg: 0, cls: 0 }, atypical: 0.5,
  order: [], shown: PAGE, selected: null, reviewer: '', adding: false, naming: false, voices: {}, queue: Promise.resolve(),
};

function say(text, ms = 4000) {
  $('say').textContent = text;
  $('say').hidden = !text;
  clearTimeout(say.timer);
  if (text) say.timer = setTimeout(() => say(''), ms);
}

const viewer = OpenSeadragon({
  element: $('osd'), showNavigationControl: false, showNavigator: true, navigatorPosition: 'TOP_RIGHT', drawer: 'canvas',
  gestureSettingsMouse: { clickToZoom: false }, maxZoomPixelRatio: 4, visibilityRatio: 0.3, animationTime: 0.4,
  imageLoaderLimit: 6, timeout: 60000,
});
const marks = new Marks($('marks'), viewer);

function source(s) {
  return {
    width: s.width, height: s.height, tileSize: s.tile, minLevel: 0, maxLevel: s.max_level,
    getTileUrl: (level, x, y) => `tile/${s.id}/${level}/${x}_${y}.jpg`,
  };
}

async function open(id, place) {
  state.slide = id;
  state.selected = null;
  state.naming = false;
  const s = state.index.slides[id];
  $('name').textContent = s.name;
  document.title = `${s.name} - mithras`;
  list();
  viewer.open(source(s));
  try {
    state.detail = await get(`api/slide/${id}`);
  } catch (e) {
    say(String(e.message));
    return;
  }
  state.figures = new Figures(state.detail);
  state.point = { ...state.detail.point };
  state.atypical = state.detail.atypical_from ?? 0.5;
  $('atypical-label').hidden = !state.figures.atypical;
  await reviews();
  await listen();
  sliders();
  refresh();
  if (!place) return;
  if (viewer.world.getItemCount()) go(place.x, place.y);
  else viewer.addOnceHandler('open', () => go(place.x, place.y));
}

/** Everything that follows the thresholds and the reviews. */
function refresh() {
  const { figures, detail, point } = state;
  if (!figures) return;
  figures.accept(point);
  const counted = figures.counted();
  const spot = hotspot(counted, figures.mpp);
  marks.scene = {
    figures, hotspot: spot, density: figures.mpp ? density(counted, figures.mpp) : [], tissue: detail.tissue, flaws: detail.flaws,
    unread: detail.unread, selected: state.selected, blind: $('blind').checked, atypical: state.atypical,
  };
  marks.soon();
  const n = counted.length;
  const area = figures.analysed;
  const parts = [`${n} ${n === 1 ? 'figure' : 'figures'}${figures.searched ? '' : ' by the reviewer; the network has not searched this slide'}`];
  if (spot) parts.push(`hotspot ${spot.count} in 2 mm²`);
  if (area > 0) parts.push(`${((20 * n) / area).toFixed(1)} per 20 mm² on ${area.toFixed(2)} mm²${area < 2 ? ' (less than a hotspot)' : ''}`);
  $('numbers').textContent = $('blind').checked ? '' : parts.join(' · ');
  const card = detail.point;
  const moved = point.seg !== card.seg || point.cls !== card.cls;
  $('moved').hidden = !moved;
  $('moved').textContent = `not the run's operating point (${card.seg}, ${card.cls})`;
  $('thresholds').hidden = !figures.searched;
  const named = Object.entries(state.index.points).find(([, p]) => p.seg === point.seg && p.cls === point.cls);
  $('point').value = named ? named[0] : '';
  const known = named && named[1].precision !== null && named[1].precision !== undefined;
  $('expected').textContent = known
    ? `expected precision ${named[1].precision.toFixed(2)}, recall ${named[1].recall.toFixed(2)}`
    : 'precision and recall at this point are not known';
  for (const [id, v] of [['seg', point.seg], ['cls', point.cls], ['atypical', state.atypical]]) $(`${id}-value`).textContent = v.toFixed(2);
  $('reviewed').textContent = `${figures.verdict.size + figures.added.length} reviewed`;
  gallery();
}

/** What all reviewers say of this slide, and how far they agree; asked for only where it is to be seen. */
async function listen() {
  const wanted = $('order').value === 'differ' && !$('blind').checked;
  $('agreement').textContent = '';
  state.voices = {};
  if (!wanted) return;
  const slide = state.slide;
  const known = await get(`api/voices/${slide}`);
  if (slide !== state.slide) return;
  state.voices = known.voices;
  const lines = known.agreement.map((a) => `${a.reviewers.join(' and ')}: ${a.agree} of ${a.both} alike, kappa ${a.kappa === null ? 'undefined' : a.kappa.toFixed(2)}`);
  $('agreement').textContent = lines.join('; ') || 'no two reviewers have judged the same';
}

/** Counts of all slides at the thresholds that are set, as a file. */
async function download() {
  const lines = [];
  for (const s of state.index.slides.filter((one) => one.width)) {
    say(`counting ${s.name}`);
    const detail = await get(`api/slide/${s.id}`);
    const figures = new Figures(detail);
    if (state.reviewer) {
      const known = await get(`api/reviews/${s.id}?reviewer=${encodeURIComponent(state.reviewer)}`);
      for (const e of known.entries) apply(e, figures);
    }
    lines.push(countsLine(s.name, figures, state.point, detail.point, state.reviewer));
  }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([countsCsv(lines)], { type: 'text/csv' }));
  link.download = 'counts-viewed.csv';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  say(`${lines.length} slides counted`);
}

function sliders() {
  $('seg').value = state.point.seg;
  $('cls').value = state.point.cls;
  $('atypical').value = state.atypical;
}

function list() {
  const wanted = $('search').value.toLowerCase();
  $('slides').replaceChildren(...state.index.slides.filter((s) => s.name.toLowerCase().includes(wanted)).map((s) => {
    const b = document.createElement('button');
    const small = document.createElement('small');
    b.textContent = s.name;
    small.textContent = s.note;
    b.append(small);
    b.setAttribute('aria-current', String(s.id === state.slide));
    b.disabled = !s.width;
    b.onclick = () => open(s.id).catch((e) => say(e.message));
    const item = document.createElement('li');
    item.append(b);
    return item;
  }));
}

function crop(i) {
  const f = state.figures;
  return `crop/${state.slide}/${f.x[i].toFixed(0)}_${f.y[i].toFixed(0)}.jpg`;
}

function gallery() {
  const f = state.figures;
  state.order = ordered(f, $('order').value, state.point, state.voices);
  const blind = $('blind').checked;
  const shown = state.order.slice(0, state.shown);
  // Pictures are asked for again only where the order has changed.
  const now = `${state.slide}:${shown.join()}`;
  if (gallery.now !== now) {
    gallery.now = now;
    $('gallery').replaceChildren(...shown.map((i) => {
      const b = document.createElement('button');
      const picture = document.createElement('img');
      picture.loading = 'lazy';
      picture.src = crop(i);
      picture.alt = `candidate ${i + 1}`;
      b.append(picture, document.createElement('span'));
      b.onclick = () => select(i);
      return b;
    }));
  }
  shown.forEach((i, k) => {
    const b = $('gallery').children[k];
    b.lastElementChild.textContent = [f.verdict.get(f.key(i)), blind || Number.isNaN(f.cls[i]) ? '' : f.cls[i].toFixed(2)].filter(Boolean).join(' ');
    b.setAttribute('aria-current', String(i === state.selected));
  });
  $('more').hidden = state.order.length <= state.shown;
}

function select(i) {
  state.selected = i;
  state.naming = false;
  go(state.figures.x[i], state.figures.y[i]);
  refresh();
}

function go(x, y) {
  const item = viewer.world.getItemAt(0);
  if (!item) return;
  const mpp = state.figures && state.figures.mpp ? state.figures.mpp[0] : 0.25;
  const half = 60 / mpp;
  viewer.viewport.fitBounds(item.imageToViewportRectangle(x - half, y - half, 2 * half, 2 * half));
  const link = new URLSearchParams({ slide: state.index.slides[state.slide].name, x: x.toFixed(0), y: y.toFixed(0) });
  history.replaceState(null, '', `#${link}`);
}

/** Reviews of this reviewer on this slide. */
async function reviews() {
  const f = state.figures;
  f.verdict.clear();
  f.added = [];
  if (!state.reviewer) return;
  const known = await get(`api/reviews/${state.slide}?reviewer=${encodeURIComponent(state.reviewer)}`);
  for (const e of known.entries) apply(e);
}

function apply(e, f = state.figures) {
  if (e.added) {
    f.added = f.added.filter((a) => a.key !== e.key);
    if (e.verdict === 'figure' || e.verdict === 'atypical') f.added.push({ key: e.key, x: e.x, y: e.y, verdict: e.verdict });
  } else if (e.verdict === null) f.verdict.delete(e.key);
  else f.verdict.set(e.key, e.verdict);
}

/** Saves a word; the page shows it only once it is on disk. */
function record(entry) {
  if (!state.reviewer) {
    say('Enter your initials first');
    $('reviewer').focus();
    return false;
  }
  const slide = state.slide;
  state.queue = state.queue.then(async () => {
    try {
      await post('api/review', { reviewer: state.reviewer, slide, ...entry });
      if (slide === state.slide) {
        apply(entry);
        if (entry.added) state.selected = null;
        await listen();
        refresh();
      }
    } catch (e) {
      say(`not saved: ${e.message}`);
    }
  });
  return true;
}

function judge(verdict, morphology = null) {
  const place = state.selected === null ? null : state.figures.place(state.selected);
  if (!place) return say('Choose a candidate first: click it, or press n');
  if (record({ ...place, verdict, morphology }) && !place.added) step(1);
  return null;
}

/** The next digit names the morphology; the first four are typical, the others atypical. */
const MORPHOLOGIES = ['prometaphase', 'metaphase', 'ring_shape', 'anaphase_telophase', 'bipolar_asymmetric', 'multipolar', 'segregation', 'other'];
function name() {
  state.naming = true;
  say(MORPHOLOGIES.map((m, k) => `${k + 1} ${m.replace('_', ' ')}`).join(' · '), 15000);
}

function step(by) {
  const at = state.order.indexOf(state.selected);
  const next = state.order[Math.min(Math.max(at + by, 0), state.order.length - 1)];
  if (next !== undefined) select(next);
}

function undo() {
  if (!state.reviewer) return;
  const slide = state.slide;
  state.queue = state.queue.then(async () => {
    try {
      await post('api/undo', { reviewer: state.reviewer, slide });
      await reviews();
      refresh();
    } catch (e) {
      say(`not undone: ${e.message}`);
    }
  });
}

function nearest(x, y, within) {
  const f = state.figures;
  let best = null;
  for (let i = 0; i < f.length; i++) {
    const d = Math.hypot(f.x[i] - x, f.y[i] - y);
    if (d <= within && (!best || d < best.d) && marks.kind(i)) best = { i, d };
  }
  f.added.forEach((a, k) => {
    const d = Math.hypot(a.x - x, a.y - y);
    if (d <= within && (!best || d < best.d)) best = { i: f.length + k, d };
  });
  return best && best.i;
}

function imagePoint(position) {
  const item = viewer.world.getItemAt(0);
  return item ? item.viewportToImageCoordinates(viewer.viewport.pointFromPixel(position)) : null;
}

viewer.addHandler('canvas-click', (e) => {
  if (!e.quick || !state.figures) return;
  const p = imagePoint(e.position);
  if (state.adding) {
    state.adding = false;
    document.body.style.cursor = '';
    const [x, y] = [p.x.toFixed(2), p.y.toFixed(2)];
    record({ key: `+${x},${y}`, x: Number(x), y: Number(y), verdict: 'figure', morphology: null, added: true });
    return;
  }
  const f = marks.frame();
  const i = nearest(p.x, p.y, 14 / f.sx);
  if (i !== null) {
    state.selected = i;
    refresh();
  }
});

new OpenSeadragon.MouseTracker({
  element: $('stage'),
  moveHandler: (e) => {
    const p = imagePoint(e.position);
    if (!p || !state.figures) return;
    const um = state.figures.mpp ? ` · ${(p.x * state.figures.mpp[0]).toFixed(0)}, ${(p.y * state.figures.mpp[1]).toFixed(0)} µm` : '';
    $('place').textContent = `${p.x.toFixed(0)}, ${p.y.toFixed(0)} px${um}`;
    const f = marks.frame();
    const i = f ? nearest(p.x, p.y, 10 / f.sx) : null;
    const shown = i !== null && i < state.figures.length && !$('blind').checked;
    $('tip').hidden = !shown;
    if (shown) tip(i, e.position);
  },
});

function tip(i, at) {
  const f = state.figures;
  const lines = [`first stage ${f.seg[i].toFixed(3)}`, `second stage ${Number.isNaN(f.cls[i]) ? '-' : f.cls[i].toFixed(3)}`];
  if (f.atypical && !Number.isNaN(f.atypical[i])) lines.push(`atypical ${f.atypical[i].toFixed(2)}`);
  if (f.morphology && f.morphology[i]) lines.push(f.morphology[i]);
  if (f.outside[i]) lines.push('outside the tissue: not counted');
  if (f.flaw[i]) lines.push(`${f.flaw[i].toLowerCase()} here: counted, look twice`);
  if ($('tip').dataset.of !== String(i)) {
    $('tip').dataset.of = i;
    const picture = document.createElement('img');
    picture.src = crop(i);
    picture.alt = '';
    $('tip').replaceChildren(lines.join('\n'), picture);
  }
  $('tip').style.left = `${at.x + 16}px`;
  $('tip').style.top = `${at.y + 16}px`;
}

viewer.addHandler('update-viewport', () => {
  const f = marks.frame();
  const mpp = state.figures && state.figures.mpp;
  scaleBar($('scale'), f && mpp ? mpp[0] / f.sx : null);
});

function layer(name, on) {
  marks.layers[name] = on;
  for (const box of document.querySelectorAll(`[data-layer="${name}"]`)) box.checked = on;
  marks.soon();
}

for (const box of document.querySelectorAll('[data-layer]')) {
  layer(box.dataset.layer, box.checked);
  box.onchange = () => layer(box.dataset.layer, box.checked);
}
for (const id of ['seg', 'cls']) $(id).oninput = () => { state.point = { ...state.point, [id]: Number($(id).value) }; refresh(); };
$('atypical').oninput = () => { state.atypical = Number($('atypical').value); refresh(); };
$('point').onchange = () => {
  const p = state.index.points[$('point').value];
  if (p) { state.point = { seg: p.seg, cls: p.cls }; sliders(); refresh(); }
};
const hear = () => listen().then(refresh).catch((e) => say(e.message));
$('order').onchange = hear;
$('download').onclick = () => download().catch((e) => say(e.message));
$('more').onclick = () => { state.shown += PAGE; gallery(); };
$('search').oninput = list;
$('blind').onchange = () => {
  if ($('blind').checked && $('order').value === 'differ') $('order').value = 'open';
  $('order').querySelector('[value=differ]').disabled = $('blind').checked;
  hear();
};
$('undo').onclick = undo;
$('add').onclick = () => { state.adding = true; document.body.style.cursor = 'crosshair'; say('Click the missed figure'); };
$('reviewer').onchange = async () => {
  state.reviewer = $('reviewer').value.trim();
  try { await reviews(); refresh(); } catch (e) { say(e.message); }
};
for (const b of document.querySelectorAll('[data-verdict]')) b.onclick = () => judge(b.dataset.verdict);
for (const [id, name] of [['toggle-list', 'no-list'], ['toggle-side', 'no-side']]) {
  $(id).onclick = () => $(id).setAttribute('aria-expanded', String(!document.body.classList.toggle(name)));
}

const KEYS = {
  n: () => step(1), p: () => step(-1), z: undo, '+': () => $('add').click(), 0: () => viewer.viewport.goHome(),
  1: () => judge('figure'), 2: () => judge('mimicker'), 3: () => judge('unsure'), 4: () => judge('atypical'), x: () => judge('removed'),
  h: () => { const on = !marks.layers.accepted; layer('accepted', on); layer('rejected', on); },
  d: () => layer('heat', !marks.layers.heat), t: () => layer('tissue', !marks.layers.tissue),
  b: () => { $('blind').checked = !$('blind').checked; $('blind').onchange(); }, m: name,
  j: () => open(Math.min(state.slide + 1, state.index.slides.length - 1)), k: () => open(Math.max(state.slide - 1, 0)),
  '?': () => $('help').showModal(),
};
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== 'range' && e.target.type !== 'checkbox') return;
  const named = state.naming && /^[1-8]$/.test(e.key) ? Number(e.key) - 1 : null;
  state.naming = false;
  const act = named === null ? KEYS[e.key] : () => judge(named < 4 ? 'figure' : 'atypical', MORPHOLOGIES[named]);
  if (act && state.index) { e.preventDefault(); Promise.resolve(act()).catch((x) => say(x.message)); }
});

async function start() {
  state.index = await get('api/index');
  const none = document.createElement('option');
  none.value = '';
  none.textContent = 'as set below';
  $('point').replaceChildren(none, ...Object.keys(state.index.points).map((name) => {
    const o = document.createElement('option');
    o.value = o.textContent = name;
    return o;
  }));
  const link = new URLSearchParams(location.hash.slice(1));
  const wanted = state.index.slides.findIndex((s) => s.name === link.get('slide'));
  const place = link.has('x') ? { x: Number(link.get('x')), y: Number(link.get('y')) } : null;
  const first = wanted >= 0 ? wanted : state.index.slides.findIndex((s) => s.width);
  if (first < 0) return say('No slide can be read');
  if (matchMedia('(max-width: 50rem)').matches) document.body.classList.add('no-list', 'no-side');
  return open(first, wanted >= 0 ? place : null);
}
start().catch((e) => say(e.message));
