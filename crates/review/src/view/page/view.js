// The page: one slide at a time, its candidates, thresholds and reviews.

import { $, get, post, scaleBar } from './common.js';
import {
  Figures, PAPER_RULE, countOf, countsCsv, countsLine, density, hotspots, inside, mm2Text, onSlideMm2, ordered, reach, ringMm2,
} from './model.js';
import { Marks } from './marks.js';

const PAGE = 60;
const state = {
  index: null, slide: 0, detail: null, figures: null, point: { seg: 0, cls: 0 }, atypical: 0.5,
  order: [], shown: PAGE, selected: null, reviewer: '', adding: false, naming: false, voices: {}, queue: Promise.resolve(),
  history: [], desk: null, undone: [], rule: { ...PAPER_RULE }, proposals: [], spot: null, moving: false, drawing: null,
  listened: null,
};

/** What a window remembers over a reload; a browser that allows no storage forgets. */
const memory = {
  get(key) { try { return JSON.parse(sessionStorage.getItem(`mithras.${key}`)); } catch { return null; } },
  set(key, value) { try { sessionStorage.setItem(`mithras.${key}`, JSON.stringify(value)); } catch { /* forgotten */ } },
};

const blinded = () => $('blind').checked;

function notify(text, ms = 4000) {
  $('message').textContent = text;
  $('message').hidden = !text;
  clearTimeout(notify.timer);
  if (text) notify.timer = setTimeout(() => notify(''), ms);
}

const viewer = OpenSeadragon({
  element: $('osd'), showNavigationControl: false, showNavigator: true, navigatorPosition: 'TOP_RIGHT', drawer: 'canvas',
  gestureSettingsMouse: { clickToZoom: false }, maxZoomPixelRatio: 4, visibilityRatio: 0.3, animationTime: 0.4,
  imageLoaderLimit: 6, timeout: 60000,
});
const marks = new Marks($('marks'), viewer);
viewer.canvas.setAttribute('role', 'application');
viewer.canvas.setAttribute('aria-label', 'the slide: arrows move it, + and - zoom');
// Tests ask where a place of the slide is on the screen.
window.osd = viewer;

function source(s) {
  return {
    width: s.width, height: s.height, tileSize: s.tile, minLevel: 0, maxLevel: s.max_level,
    getTileUrl: (level, x, y) => `tile/${s.id}/${level}/${x}_${y}.jpg`,
  };
}

/** Nothing of the slide before is left while another is opened, or where it cannot be. */
function clear() {
  Object.assign(state, {
    detail: null, figures: null, desk: null, order: [], selected: null, naming: false, moving: false, drawing: null, adding: false, undone: [],
    proposals: [], spot: null, held: null, history: [], voices: {},
  });
  drawn();
  marks.scene = null;
  marks.soon();
  gallery.now = null;
  const filled = ['numbers', 'caveats', 'proposals', 'hotspot-count', 'hotspot-kept', 'region-list', 'region-sum', 'region-overlaps', 'reviewed', 'history', 'signatures', 'gallery', 'agreement', 'disagreements'];
  for (const id of filled) $(id).replaceChildren();
  for (const id of ['moved', 'frozen', 'caveats', 'keep', 'hotspot-drop', 'region-command', 'differ', 'more', 'tip']) $(id).hidden = true;
}

/** Asked after an answer came: whether the same slide is still shown to the same reviewer. */
function watch() {
  const { slide, reviewer } = state;
  return () => slide === state.slide && reviewer === state.reviewer && state.figures !== null;
}

async function open(id, place) {
  const s = state.index.slides[id];
  if (!s.width) return notify(`${s.name} cannot be opened: ${s.unopened}`);
  open.turn = (open.turn || 0) + 1;
  const { turn } = open;
  const left = () => turn !== open.turn;
  state.slide = id;
  clear();
  memory.set('slide', s.name);
  $('name').textContent = s.name;
  document.title = `${s.name} - mithras`;
  list();
  viewer.open(source(s));
  try {
    const detail = await get(`api/slide/${id}`);
    if (left()) return null;
    state.detail = detail;
  } catch (e) {
    if (left()) return null;
    // It stays until another slide is opened.
    $('numbers').textContent = `cannot be shown: ${e.message}`;
    return notify(e.message);
  }
  state.figures = new Figures(state.detail);
  const kept = memory.get(`point.${s.name}`);
  state.point = kept && kept.run && kept.run.seg === state.detail.point.seg && kept.run.cls === state.detail.point.cls ? { seg: kept.seg, cls: kept.cls } : { ...state.detail.point };
  state.atypical = state.detail.atypical_from ?? 0.5;
  $('atypical-label').hidden = !state.figures.atypical;
  // Verdicts that are still on their way are among those that are loaded.
  for (const load of [desk, () => state.queue, reviews, listen]) {
    try { await load(); } catch (e) { notify(e.message); }
    if (left()) return null;
  }
  sliders();
  refresh();
  if (!place) return null;
  if (viewer.world.getItemCount()) go(place.x, place.y);
  else viewer.addOnceHandler('open', () => { if (!left()) go(place.x, place.y); });
  return null;
}

/** Opens the next slide in a direction, past those that cannot be opened. */
function turn(by) {
  let id = state.slide + by;
  while (state.index.slides[id] && !state.index.slides[id].width) id += by;
  return state.index.slides[id] ? open(id) : null;
}

function slideSize() {
  const { width, height } = state.index.slides[state.slide];
  return [width, height];
}

/** Everything that follows the thresholds and the reviews. */
function refresh() {
  const { figures, detail, point } = state;
  if (!figures) return;
  figures.accept(point);
  const counted = figures.counted();
  state.proposals = hotspots(counted, figures.mpp, state.rule);
  const isPaper = ['shape', 'fields', 'field_mm2', 'apart'].every((k) => state.rule[k] === PAPER_RULE[k]);
  const [spot] = isPaper ? state.proposals : hotspots(counted, figures.mpp, PAPER_RULE, 1);
  hotspotNow(counted);
  caveats();
  marks.scene = {
    figures, density: figures.mpp && !blinded() ? density(counted, figures.mpp) : [], tissue: detail.tissue, flaws: detail.flaws,
    unread: detail.unread, selected: state.selected, blind: blinded(), atypical: state.atypical,
    spot: blinded() || !state.spot ? null : { rule: state.rule, reach: reach(state.rule), centres: state.spot.centres, mpp: figures.mpp, size: slideSize(), moving: state.moving },
    searched: detail.regions, drawn: state.desk ? state.desk.drawn : [], drawing: state.drawing && state.drawing.corners,
  };
  marks.soon();
  regionsNow(counted);
  document.body.classList.toggle('blind', blinded());
  memory.set(`point.${state.index.slides[state.slide].name}`, { ...point, run: detail.point });
  const n = counted.length;
  const area = figures.analysed;
  const parts = [`${n} ${n === 1 ? 'figure' : 'figures'}${figures.searched ? '' : ' by the reviewer; the network has not searched this slide'}`];
  if (spot) parts.push(`hotspot ${spot.count} in ${hotspotArea(PAPER_RULE, spot.centres)}`);
  if (state.spot?.placed) parts.push(`placed by hand ${countOf(counted, figures.mpp, state.rule, state.spot.centres)} in ${hotspotArea(state.rule, state.spot.centres, detail.regions)}`);
  if (area > 0) parts.push(`${((20 * n) / area).toFixed(1)} per 20 mm² on ${area.toFixed(2)} mm²${area < 2 ? ' (less than a hotspot)' : ''}`);
  // Counts that mean nothing are never shown without saying so.
  const warned = shownCaveats(state.index.slides[state.slide]);
  if (warned.length) parts.push(`⚠ ${[...new Set(warned.map((c) => c.label))].join(', ')}`);
  const invalid = warned.some((c) => c.kind === 'outside-range');
  $('numbers').textContent = blinded() ? '' : `${invalid ? 'not valid: ' : ''}${parts.join(' · ')}`;
  state.counted = `${parts.slice(0, 2).join(' · ')}`;
  listNumbers();
  const card = detail.point;
  const moved = point.seg !== card.seg || point.cls !== card.cls;
  $('moved').hidden = !moved || blinded();
  $('keep').hidden = !moved || !state.index.run || blinded();
  if (keepPoint.point !== pointText(point)) $('kept').textContent = '';
  $('keep-command').textContent = `mithras recount ${quoted(state.index.run || '')} --operating-point ${pointText(point)} --into DIR`;
  $('moved').textContent = `not the run's operating point (${card.seg}, ${card.cls})`;
  $('thresholds').hidden = !figures.searched;
  const named = namedPoint(point);
  $('point').value = named ? named[0] : '';
  const known = named && named[1].precision !== null && named[1].precision !== undefined;
  $('expected').textContent = known
    ? `expected precision ${named[1].precision.toFixed(2)}, recall ${named[1].recall.toFixed(2)}`
    : 'precision and recall at this point are not known';
  for (const [id, v] of [['seg', point.seg], ['cls', point.cls], ['atypical', state.atypical]]) $(`${id}-value`).textContent = v.toFixed(2);
  $('reviewed').textContent = `${figures.verdict.size + figures.added.length} reviewed`;
  gallery();
}

/** The card's name for two thresholds, with what it promises. */
function namedPoint(point) {
  return Object.entries(state.index.points).find(([, p]) => p.seg === point.seg && p.cls === point.cls);
}

/** A point as the command line takes it: its name, or two thresholds. */
function pointText(point) {
  const known = namedPoint(point);
  return known ? known[0] : `${point.seg},${point.cls}`;
}

/** A path as one word of a command line; between double quotes on Windows, whose paths hold none. */
function quoted(path) {
  if (/^[\w@%+=:,./-]+$/.test(path)) return path;
  return path.includes('\\') ? `"${path}"` : `'${path.replaceAll("'", "'\\''")}'`;
}

/** Keeps the thresholds that are set as a run of its own, next to this one. */
async function keepPoint() {
  keepPoint.point = pointText(state.point);
  $('keep-run').disabled = true;
  $('kept').textContent = 'writing the run at these thresholds';
  try {
    const kept = await post('api/keep', { slide: state.slide, point: pointText(state.point) });
    $('kept').textContent = `kept: mithras view ${quoted(kept.folder)}`;
  } catch (e) {
    $('kept').textContent = `not kept: ${e.message}`;
  } finally {
    $('keep-run').disabled = false;
  }
}

/** The caveats that may be shown: blinded, none that tells what the network found. */
const shownCaveats = (slide) => slide.caveats.filter((c) => !blinded() || !c.of_figures);

/** What a reader of the numbers must know, over the slide. */
function caveats() {
  const all = shownCaveats(state.index.slides[state.slide]);
  $('caveats').replaceChildren(...all.map((c) => {
    const p = document.createElement('p');
    const b = document.createElement('b');
    b.textContent = `${c.label}: `;
    p.append(b, c.text);
    return p;
  }));
  $('caveats').hidden = !all.length;
  // Many on a small window are scrolled, by keys as well.
  $('caveats').tabIndex = $('caveats').scrollHeight > $('caveats').clientHeight + 1 ? 0 : -1;
}

const PRESETS = {
  paper: ['paper: densest 2 mm² square (Chebyshev distance)', { shape: 'square', fields: 1, field_mm2: 2 }],
  breast: ['breast: 10 fields of 0.237 mm²', { shape: 'circle', fields: 10, field_mm2: 0.237 }],
  gist: ['GIST: 5 mm²', { shape: 'circle', fields: 1, field_mm2: 5 }],
  'soft-tissue': ['soft tissue: 10 fields of 0.1734 mm²', { shape: 'circle', fields: 10, field_mm2: 0.1734 }],
  net: ['neuroendocrine: 10 fields of 0.2 mm²', { shape: 'circle', fields: 10, field_mm2: 0.2 }],
  melanoma: ['melanoma: 1 mm²', { shape: 'circle', fields: 1, field_mm2: 1 }],
  'canine-mast-cell': ['canine mast cell: 10 fields of 0.237 mm²', { shape: 'circle', fields: 10, field_mm2: 0.237 }],
  own: ['as set below', null],
};

function ruleShown() {
  const r = state.rule;
  $('preset').value = r.preset;
  $('shape').value = r.shape;
  $('fields').value = r.fields;
  $('field-mm2').value = r.field_mm2;
  $('apart').checked = r.apart;
}

/** Takes a rule; the hotspot is the densest place by it. */
function setRule(rule, spot = null) {
  const ok = rule.fields >= 1 && rule.fields <= 100 && rule.field_mm2 >= 0.01 && rule.field_mm2 <= 20;
  if (!ok) return notify('1 to 100 fields of 0.01 to 20 mm²');
  state.rule = rule;
  state.spot = spot;
  state.moving = false;
  ruleShown();
  return refresh();
}

const same = (a, b) => a.length === b.length && a.every((p, i) => p[0] === b[i][0] && p[1] === b[i][1]);

/**
 * The area of a hotspot: the part on the slide, of one that was placed in the regions that were searched, with all of it where that is
 * more. Fields that may be apart are as many as have a figure to be centred on.
 */
function hotspotArea(rule, centres, regions = []) {
  const part = mm2Text(onSlideMm2(rule, centres, state.figures.mpp, slideSize(), regions));
  const n = rule.apart ? centres.length : rule.fields;
  const whole = mm2Text(n * rule.field_mm2);
  const fields = n < rule.fields ? `, ${n} of ${rule.fields} fields` : '';
  return `${part === whole ? `${whole} mm²` : `${part} mm² ${regions.length ? 'searched' : 'on the slide'} (the rule has ${whole} mm²)`}${fields}`;
}

/** The hotspot that is shown: where the reviewer put it, else the densest place; its count follows the figures. */
function hotspotNow(counted) {
  const { figures } = state;
  const [best] = state.proposals;
  if (!figures.mpp) state.spot = null;
  else if (!state.spot || !state.spot.placed) state.spot = best ? { centres: best.centres, placed: false } : null;
  const spot = state.spot;
  const n = spot ? countOf(counted, figures.mpp, state.rule, spot.centres) : 0;
  const mm2 = spot ? hotspotArea(state.rule, spot.centres, spot.placed ? state.detail.regions : []) : '';
  $('hotspot-count').textContent = spot ? `${n} ${n === 1 ? 'figure' : 'figures'} in ${mm2}${spot.placed ? ', placed by hand' : ', the densest place'}` : 'no figure';
  $('proposals').replaceChildren(...state.proposals.map((p, k) => {
    const b = document.createElement('button');
    b.textContent = `${k + 1}: ${p.count}`;
    b.setAttribute('aria-label', `place ${k + 1}: ${p.count} figures`);
    b.setAttribute('aria-pressed', String(Boolean(spot) && same(spot.centres, p.centres)));
    b.onclick = () => {
      state.spot = { centres: p.centres, placed: true };
      const [x, y] = p.centres[0];
      look(x, y, 1.5 * reach(state.rule));
      refresh();
    };
    return b;
  }));
  $('hotspot-move').setAttribute('aria-pressed', String(state.moving));
  const kept = state.desk && state.desk.hotspot;
  $('hotspot-drop').hidden = !kept;
  $('hotspot-kept').textContent = kept ? `kept by ${kept.reviewer}, ${when(kept.time)}` : '';
}

const when = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ');

/** Looks at a place, `half` um around it. */
function look(x, y, half) {
  const item = viewer.world.getItemAt(0);
  const { mpp } = state.figures;
  if (!item || !mpp) return;
  const [w, h] = [half / mpp[0], half / mpp[1]];
  viewer.viewport.fitBounds(item.imageToViewportRectangle(x - w, y - h, 2 * w, 2 * h));
}

function moveHotspot(on) {
  if (on && blinded()) return notify('Blinded, the hotspot is not shown');
  if (on && !state.spot) return notify('There is no hotspot to move');
  state.moving = on;
  if (on) {
    state.before = state.spot;
    viewer.canvas.focus();
    notify('Drag the hotspot, or use the arrows; Enter keeps it, Escape puts it back', 8000);
  }
  return refresh();
}

/** Moves the hotspot by so many um. */
function nudge(dx, dy) {
  const { mpp } = state.figures;
  const s = state.index.slides[state.slide];
  const within = (v, most) => Math.min(Math.max(v, 0), most);
  const centres = state.spot.centres.map(([x, y]) => [within(x + dx / mpp[0], s.width), within(y + dy / mpp[1], s.height)]);
  state.spot = { centres, placed: true };
  refresh();
}

/** Takes the kept hotspot back: the densest place is the hotspot again. */
async function dropHotspot() {
  if (!named()) return;
  const still = watch();
  const { preset, shape, fields, field_mm2, apart } = state.rule;
  await post('api/hotspot', { reviewer: state.reviewer, slide: state.slide, preset, shape, fields, field_mm2, apart, centres_px: [] });
  if (!still()) return;
  await desk();
  refresh();
  notify('The densest place is the hotspot again');
}

async function keepHotspot() {
  if (!state.spot || !named()) return;
  state.moving = false;
  const still = watch();
  const { preset, shape, fields, field_mm2, apart } = state.rule;
  await post('api/hotspot', { reviewer: state.reviewer, slide: state.slide, preset, shape, fields, field_mm2, apart, centres_px: state.spot.centres });
  if (!still()) return;
  state.spot = { ...state.spot, placed: true };
  await desk();
  refresh();
  notify('The hotspot is kept');
}

/** Whether a slide is shown that can be written about, and there is a name to sign with. */
function named() {
  if (!state.figures || !state.desk) {
    notify('This slide is not shown: open it again');
    return false;
  }
  if (state.reviewer) return true;
  notify('Enter your initials first');
  $('reviewer').focus();
  return false;
}

const deskPath = () => `api/desk/${state.slide}?reviewer=${encodeURIComponent(state.reviewer)}`;

/** Hotspot, regions and signatures of this slide, as they are on disk. */
async function desk() {
  const still = watch();
  const known = await get(deskPath());
  if (!still()) return;
  state.desk = known;
  const kept = known.hotspot;
  if (kept) {
    state.rule = { preset: kept.preset in PRESETS ? kept.preset : 'own', shape: kept.shape, fields: kept.fields, field_mm2: kept.field_mm2, apart: kept.apart };
    state.spot = { centres: kept.centres_px, placed: true };
  } else {
    state.rule = { ...PAPER_RULE };
    state.spot = null;
  }
  ruleShown();
  signatures();
}

function signatures() {
  const { frozen, signatures: all, changed: files, other_weights: weights, notes } = state.desk;
  const last = all[all.length - 1];
  $('frozen').hidden = !frozen;
  const another = weights || files.includes('counts.json') || files.includes('detections.csv');
  const result = another ? `, for another result than the one shown${weights ? ' (of other weights)' : ''}` : '';
  const changed = files.length ? `, changed since: ${files.join(', ')}` : '';
  const unknown = notes.length ? `, what changed since is not known: ${notes.join('; ')}` : '';
  $('frozen').textContent = frozen ? `signed by ${last.reviewer}, version ${last.version}${result}${changed}${unknown}` : '';
  $('sign').hidden = frozen;
  $('reopen').hidden = !frozen;
  $('reason-label').hidden = !frozen;
  $('reason').value = '';
  $('signatures').replaceChildren(...all.map((s) => {
    const li = document.createElement('li');
    li.textContent = s.signed ? `version ${s.version}: ${s.reviewer}, ${when(s.time)}` : `opened again by ${s.reviewer}, ${when(s.time)}${s.reason ? `: ${s.reason}` : ''}`;
    return li;
  }));
}

async function sign(reopen = null) {
  if (!named()) return;
  const still = watch();
  const { reviewer, slide } = state;
  // Verdicts that are still on their way belong to what is signed.
  await state.queue;
  const done = await post('api/sign', { reviewer, slide, ...(reopen && { reopen }) });
  if (still()) await desk();
  refresh();
  notify(`${reopen ? 'Opened again' : 'Signed'}: ${done.slides.join(', ')}`);
}

/** Begins or ends a region. */
function drawRegion(kind) {
  if (state.drawing && state.drawing.kind === kind) return endRegion();
  if (!named()) return null;
  state.drawing = { kind, corners: [] };
  state.adding = false;
  // Space and Enter are for the slide now, not for the button that was pressed.
  viewer.canvas.focus();
  notify(`${kind === 'polygon' ? 'Click the corners; Enter or a double click ends it' : 'Click two opposite corners'}. By keys: arrows and Space`, 8000);
  return drawn();
}

function drawn() {
  for (const kind of ['polygon', 'rectangle']) $(kind).setAttribute('aria-pressed', String(Boolean(state.drawing) && state.drawing.kind === kind));
  pointing();
  refresh();
}

/** The pointer and the cross in the middle while a place is asked for. */
function pointing() {
  const asked = Boolean(state.drawing) || state.adding;
  document.body.style.cursor = asked ? 'crosshair' : '';
  $('cross').hidden = !asked;
}

/** The place under the cross in the middle of the window. */
function middle() {
  const item = viewer.world.getItemAt(0);
  return item ? item.viewportToImageCoordinates(viewer.viewport.getCenter(true)) : null;
}

/** Adds a missed figure at a place. */
function addAt(p) {
  state.adding = false;
  pointing();
  const [x, y] = [p.x.toFixed(2), p.y.toFixed(2)];
  record({ key: `+${x},${y}`, x: Number(x), y: Number(y), verdict: 'figure', morphology: null, added: true });
}

function corner(x, y) {
  const d = state.drawing;
  const s = state.index.slides[state.slide];
  const within = (v, most) => Math.min(Math.max(Math.round(v * 100) / 100, 0), most);
  const p = [within(x, s.width), within(y, s.height)];
  const last = d.corners[d.corners.length - 1];
  if (last && last[0] === p[0] && last[1] === p[1]) return;
  d.corners.push(p);
  if (d.kind === 'rectangle' && d.corners.length === 2) {
    const [[x0, y0], [x1, y1]] = d.corners;
    d.corners = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
    endRegion();
    return;
  }
  drawn();
}

function endRegion() {
  const ring = state.drawing ? state.drawing.corners : [];
  state.drawing = null;
  drawn();
  if (ring.length < 3) return notify('A region has three corners at least');
  const region = { name: $('region-name').value.trim(), class: '', exclude: $('region-exclude').checked, ring };
  $('region-name').value = '';
  return saveRegions([...state.desk.drawn, region]);
}

/** Saves the regions of the slide that is shown; `undone` are the earlier states that are left to go back to. */
async function saveRegions(regions, undone = [...state.undone, state.desk.drawn]) {
  if (!named()) return;
  const still = watch();
  const seen = state.desk.drawn_by ? state.desk.drawn_by.time : null;
  let known;
  try {
    known = await post('api/regions', { reviewer: state.reviewer, slide: state.slide, regions, seen });
  } catch (e) {
    notify(e.message, 8000);
    // They may have been changed in another window: they are shown as they are now.
    if (still()) await regionsAgain(still).catch(() => {});
    return;
  }
  if (!still()) return;
  state.undone = undone;
  state.desk = known;
  refresh();
}

/** Regions and signatures as they are on disk; the hotspot that is being placed stays. */
async function regionsAgain(still) {
  const known = await get(deskPath());
  if (!still()) return;
  state.undone = [];
  state.desk = known;
  signatures();
  refresh();
}

/** Takes the last corner back while a region is drawn, else the last change of this slide's regions. */
function undoRegion() {
  if (state.drawing) {
    state.drawing.corners.pop();
    return drawn();
  }
  if (!state.undone.length) return notify('Nothing to take back');
  return saveRegions(state.undone[state.undone.length - 1], state.undone.slice(0, -1));
}

function regionsNow(counted) {
  const { figures, desk: known } = state;
  const all = known ? known.drawn : [];
  const out = all.filter((r) => r.exclude);
  const holds = (r, p) => inside(r.ring, p) && !out.some((o) => inside(o.ring, p));
  $('region-list').replaceChildren(...all.map((r, k) => {
    const li = document.createElement('li');
    const mm2 = known.mm2[k] ?? (figures.mpp ? ringMm2(r.ring, figures.mpp) : null);
    const n = counted.filter((p) => holds(r, p)).length;
    const size = mm2 === null ? '' : ` ${mm2.toFixed(3)} mm²`;
    li.textContent = `${r.name || `region ${k + 1}`}:${size}${r.exclude ? ', left out' : blinded() ? '' : `, ${n} ${n === 1 ? 'figure' : 'figures'}`}`;
    const b = document.createElement('button');
    b.textContent = 'delete';
    b.setAttribute('aria-label', `delete ${r.name || `region ${k + 1}`}`);
    b.onclick = () => saveRegions(all.filter((_, i) => i !== k));
    li.append(b);
    return li;
  }));
  const kept = all.filter((r) => !r.exclude);
  const n = counted.filter((p) => kept.some((r) => holds(r, p))).length;
  $('region-sum').textContent = kept.length && known.all_mm2 !== null && !blinded() ? `together ${known.all_mm2.toFixed(3)} mm², ${n} ${n === 1 ? 'figure' : 'figures'}` : '';
  $('region-overlaps').replaceChildren(...(known ? known.overlaps : []).map((text) => {
    const li = document.createElement('li');
    li.textContent = text;
    return li;
  }));
  $('region-command').hidden = !all.length || !state.index.run;
  $('region-command').lastElementChild.textContent = `mithras detect SLIDE --regions ${quoted(`${state.index.run}/reviews/regions/${state.index.slides[state.slide].name}.geojson`)} --out DIR`;
}

/** The verdicts of all reviewers on this slide, and how far they agree; only asked for where they are shown. */
async function listen() {
  const wanted = $('order').value === 'differ' && !$('blind').checked;
  const slide = state.slide;
  // What is shown of this slide stays until the answer is there: a list that is gone for a moment loses the focus.
  if (!wanted || state.listened !== slide) {
    $('agreement').textContent = '';
    state.voices = {};
    $('differ').hidden = true;
  }
  state.listened = wanted ? slide : null;
  if (!wanted) return;
  const known = await get(`api/voices/${slide}`);
  if (slide !== state.slide || state.listened !== slide) return;
  state.voices = known.voices;
  const lines = known.agreement.map((a) => `${a.reviewers.join(' and ')}: ${a.agree} of ${a.both} alike, kappa ${a.kappa === null ? 'undefined' : a.kappa.toFixed(2)}`);
  $('agreement').textContent = lines.join('; ') || 'no two reviewers have judged the same';
  disagreements(known.disagreements);
}

/** Where reviewers differ, side by side, each to be settled by a decision that is kept with who made it and when. */
function disagreements(all) {
  const open = all.filter((d) => !d.settled).length;
  $('differ').hidden = !all.length;
  $('differ-sum').textContent = `Disagreements: ${open} to settle, ${all.length - open} settled`;
  const focused = $('disagreements').contains(document.activeElement) ? document.activeElement.getAttribute('aria-label') : null;
  $('disagreements').replaceChildren(...all.map((d) => {
    const li = document.createElement('li');
    const place = `${d.x.toFixed(0)}, ${d.y.toFixed(0)}`;
    const said = document.createElement('span');
    said.textContent = `${Object.entries(d.verdicts).map(([who, v]) => `${who}: ${v}`).join(' · ')} `;
    li.append(said);
    const button = (text, what, act) => {
      const b = document.createElement('button');
      b.textContent = text;
      b.setAttribute('aria-label', `${what} at ${place}`);
      b.onclick = act;
      li.append(b);
    };
    if (d.settled) {
      const how = document.createElement('span');
      how.className = 'settled';
      how.textContent = `settled as ${d.settled.verdict} by ${d.settled.reviewer}, ${when(d.settled.time)} `;
      li.append(how);
      button('show', 'show the place', () => showPlace(d));
      button('open again', 'open the question again', () => settle(d, null));
    } else {
      button('show', 'show the place', () => showPlace(d));
      for (const verdict of ['figure', 'atypical', 'mimicker']) button(verdict, `settle as ${verdict}`, () => settle(d, verdict));
    }
    return li;
  }));
  [...$('disagreements').querySelectorAll('button')].find((b) => b.getAttribute('aria-label') === focused)?.focus();
}

/** Chooses a place, so that its mark is seen. */
function showPlace({ key, x, y }) {
  const i = state.figures.keys.indexOf(key);
  if (i >= 0) select(i);
  else go(x, y);
}

/** Keeps a decision about a place on which reviewers differ; null opens the question again. */
async function settle(d, verdict) {
  if (!named()) return;
  try {
    await post('api/settle', { reviewer: state.reviewer, slide: state.slide, key: d.key, verdict });
    await listen();
    notify(verdict ? `Settled as ${verdict}` : 'Opened again');
  } catch (e) {
    notify(`not saved: ${e.message}`);
  }
}

/** Counts of all slides at the thresholds that are set, as a file. */
async function download() {
  const lines = [];
  // As they are at the press, on every slide.
  const { point, reviewer } = state;
  for (const s of state.index.slides.filter((one) => one.width)) {
    notify(`counting ${s.name}`);
    const detail = await get(`api/slide/${s.id}`);
    const figures = new Figures(detail);
    if (reviewer) {
      const known = await get(`api/reviews/${s.id}?reviewer=${encodeURIComponent(reviewer)}`);
      for (const e of known.entries) apply(e, figures);
    }
    const known = namedPoint(point);
    lines.push(countsLine(s.name, figures, point, detail.point, reviewer, known ? known[0] : '', s.caveats.map((c) => c.text), [s.width, s.height]));
  }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([countsCsv(lines)], { type: 'text/csv' }));
  link.download = 'counts-viewed.csv';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  notify(`${lines.length} slides counted`);
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
    // Blinded, the network's numbers would be an opinion; the reason why a slide cannot be opened is not.
    small.textContent = blinded() ? s.unopened || '' : `${s.counted && s.width ? 'network: ' : ''}${s.note}`;
    b.append(small);
    const warned = shownCaveats(s);
    if (warned.length) {
      const warn = document.createElement('small');
      warn.className = 'warn';
      warn.textContent = `⚠ ${[...new Set(warned.map((c) => c.label))].join(', ')}`;
      b.append(warn);
    }
    if (s.id === state.slide) {
      const now = document.createElement('small');
      now.id = 'now';
      b.append(now);
    }
    b.setAttribute('aria-current', String(s.id === state.slide));
    b.disabled = !s.width;
    b.onclick = () => open(s.id).catch((e) => notify(e.message));
    const item = document.createElement('li');
    item.append(b);
    return item;
  }));
}

/** In the list, what is counted now on the slide that is shown, where that is not what the network counted. */
function listNumbers() {
  const now = $('now');
  if (!now) return;
  const s = state.index.slides[state.slide];
  const f = state.figures;
  const changed = f.verdict.size + f.added.length > 0 || state.point.seg !== state.detail.point.seg || state.point.cls !== state.detail.point.cls;
  now.textContent = !blinded() && s.counted && changed ? `now: ${state.counted}` : '';
}

function crop(i) {
  const f = state.figures;
  return `crop/${state.slide}/${f.x[i].toFixed(0)}_${f.y[i].toFixed(0)}.jpg`;
}

function gallery() {
  const f = state.figures;
  const blind = blinded();
  // Blinded, the order knows nothing of scores.
  const order = blind ? 'blind' : $('order').value;
  state.order = ordered(f, order, state.point, state.voices);
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
    const others = order === 'differ' ? Object.entries(state.voices).filter(([, verdicts]) => f.key(i) in verdicts).map(([who, verdicts]) => `${who}: ${verdicts[f.key(i)]}`).join(' · ') : '';
    b.lastElementChild.textContent = [others || f.verdict.get(f.key(i)), blind || Number.isNaN(f.cls[i]) ? '' : f.cls[i].toFixed(2)].filter(Boolean).join(' ');
    b.title = f.comment.get(f.key(i)) || '';
    b.setAttribute('aria-current', String(i === state.selected));
  });
  $('more').hidden = state.order.length <= state.shown;
}

function select(i) {
  state.selected = i;
  state.naming = false;
  commentShown();
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

/** No verdict of anybody. */
function forget() {
  const f = state.figures;
  f.verdict.clear();
  f.comment.clear();
  f.missed = [];
  state.history = [];
  showHistory();
  commentShown(true);
}

/** Reviews of this reviewer on this slide. */
async function reviews() {
  const f = state.figures;
  if (!f) return;
  forget();
  if (!state.reviewer) return;
  const still = watch();
  const known = await get(`api/reviews/${state.slide}?reviewer=${encodeURIComponent(state.reviewer)}`);
  if (!still() || f !== state.figures) return;
  for (const e of known.entries) apply(e);
  state.history = known.entries;
  showHistory();
  commentShown(true);
}

/** Every current verdict, each of which can be taken back. */
function showHistory() {
  $('history').replaceChildren(...state.history.map((e) => {
    const li = document.createElement('li');
    li.textContent = `${e.verdict}${e.morphology ? ` (${e.morphology.replaceAll('_', ' ')})` : ''} at ${e.x.toFixed(0)}, ${e.y.toFixed(0)}${e.comment ? `: ${e.comment}` : ''}`;
    const [there, back] = ['show', 'take back'].map((word) => {
      const b = document.createElement('button');
      b.textContent = word;
      b.setAttribute('aria-label', `${word} ${e.verdict} at ${e.x.toFixed(0)}, ${e.y.toFixed(0)}`);
      li.append(b);
      return b;
    });
    there.onclick = () => go(e.x, e.y);
    back.onclick = () => undo(e.key);
    return li;
  }));
}

function apply(e, f = state.figures) {
  if (e.added) f.add(e);
  else if (e.verdict === null) f.verdict.delete(e.key);
  else f.verdict.set(e.key, e.verdict);
  if (e.comment) f.comment.set(e.key, e.comment);
  else f.comment.delete(e.key);
}

/** Saves a verdict; the page shows it only once it is on disk. */
function record(entry) {
  if (!named()) return false;
  // The slide and the reviewer are those of now, not of the time when the queue gets here.
  const still = watch();
  const { reviewer, slide } = state;
  // The next verdict keeps the comment, even one given before this is on disk.
  if (entry.key && entry.comment) state.figures.comment.set(entry.key, entry.comment);
  state.queue = state.queue.then(async () => {
    try {
      await post('api/review', { reviewer, slide, ...entry });
      if (still()) {
        apply(entry);
        state.history = [...state.history.filter((e) => e.key !== entry.key), ...(entry.verdict ? [entry] : [])];
        showHistory();
        if (entry.added) state.selected = null;
        await listen();
        refresh();
      }
    } catch (e) {
      notify(`not saved: ${e.message}`);
    }
  });
  return true;
}

/** A verdict on the chosen candidate, with the comment in the box. */
function judge(verdict, morphology = null) {
  const place = state.selected === null ? null : state.figures.place(state.selected);
  if (!place) return notify('Choose a candidate first: click it, or press n');
  if (record({ ...place, verdict, morphology, comment: $('comment').value.trim() || null }) && !place.added) step(1);
  return null;
}

/** Shows the comment on the chosen candidate; what is being written stays where the candidate is the same. */
function commentShown(same = false) {
  if (same && document.activeElement === $('comment')) return;
  const place = state.selected === null || !state.figures ? null : state.figures.place(state.selected);
  $('comment').value = (place && state.figures.comment.get(place.key)) || '';
}

/** The next digit names the morphology; the first four are typical, the others atypical. */
const MORPHOLOGIES = ['prometaphase', 'metaphase', 'ring_shape', 'anaphase_telophase', 'bipolar_asymmetric', 'multipolar', 'segregation', 'other'];
function name() {
  state.naming = true;
  notify(MORPHOLOGIES.map((m, k) => `${k + 1} ${m.replace('_', ' ')}`).join(' · '), 15000);
}

function step(by) {
  const at = state.order.indexOf(state.selected);
  const next = state.order[Math.min(Math.max(at + by, 0), state.order.length - 1)];
  if (next !== undefined) select(next);
}

/** A comment on the chosen figure, saved with its current verdict and morphology. */
function comment() {
  const place = state.selected === null ? null : state.figures.place(state.selected);
  if (!place) return notify('Choose a candidate first: click it, or press n');
  const current = place.added ? state.figures.added[state.selected - state.figures.length].verdict : state.figures.verdict.get(place.key);
  const before = state.history.find((e) => e.key === place.key);
  const text = $('comment').value.trim();
  $('comment').blur();
  return record({ ...place, verdict: current || 'unsure', morphology: (before && before.morphology) || null, comment: text || null });
}

function undo(key = null) {
  if (!state.reviewer || !state.figures) return;
  const still = watch();
  const { reviewer, slide } = state;
  state.queue = state.queue.then(async () => {
    try {
      await post('api/undo', { reviewer, slide, ...(typeof key === 'string' && { key }) });
      if (!still()) return;
      await reviews();
      refresh();
    } catch (e) {
      notify(`not undone: ${e.message}`);
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

/** Whether a place is in the hotspot that is moved. */
function onHotspot(p) {
  if (!state.moving || !state.spot) return null;
  const { mpp } = state.figures;
  const far = reach(state.rule);
  const at = state.spot.centres.findIndex(([x, y]) => Math.max(Math.abs(p.x - x) * mpp[0], Math.abs(p.y - y) * mpp[1]) <= far);
  return at < 0 ? null : at;
}

viewer.addHandler('canvas-press', (e) => {
  const p = state.figures ? imagePoint(e.position) : null;
  state.held = p ? onHotspot(p) : null;
});
viewer.addHandler('canvas-drag', (e) => {
  if (state.held === null || state.held === undefined || !state.spot) return;
  e.preventDefaultAction = true;
  const f = marks.frame();
  const centres = state.spot.centres.map((c, k) => (k === state.held ? [c[0] + e.delta.x / f.sx, c[1] + e.delta.y / f.sy] : c));
  state.spot = { centres, placed: true };
  refresh();
});
viewer.addHandler('canvas-double-click', (e) => {
  if (!state.drawing) return;
  e.preventDefaultAction = true;
  endRegion();
});
// The arrows move the hotspot, not the slide, while it is moved.
viewer.addHandler('canvas-key', (e) => { if (state.moving || state.drawing || state.adding) e.preventDefaultAction = true; });

viewer.addHandler('canvas-click', (e) => {
  if (!e.quick || !state.figures) return;
  const p = imagePoint(e.position);
  if (state.drawing) {
    corner(p.x, p.y);
    return;
  }
  if (state.adding) {
    addAt(p);
    return;
  }
  const f = marks.frame();
  const i = nearest(p.x, p.y, 14 / f.sx);
  if (i !== null) {
    state.selected = i;
    commentShown();
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
const update = () => listen().then(refresh).catch((e) => notify(e.message));
const act = (work) => Promise.resolve().then(work).catch((e) => notify(e.message));
$('order').onchange = update;
$('download').onclick = () => download().catch((e) => notify(e.message));
$('keep-run').onclick = () => act(keepPoint);
$('more').onclick = () => { state.shown += PAGE; gallery(); };
$('search').oninput = list;
$('blind').onchange = () => {
  if ($('blind').checked && $('order').value === 'differ') $('order').value = 'open';
  $('order').querySelector('[value=differ]').disabled = $('blind').checked;
  $('order').disabled = $('blind').checked;
  memory.set('blind', $('blind').checked);
  list();
  update();
};
$('undo').onclick = () => undo();
$('preset').replaceChildren(...Object.entries(PRESETS).map(([name, [words]]) => {
  const o = document.createElement('option');
  [o.value, o.textContent] = [name, words];
  return o;
}));
$('preset').onchange = () => {
  const [, rule] = PRESETS[$('preset').value];
  if (rule) setRule({ preset: $('preset').value, apart: false, ...rule });
};
for (const id of ['shape', 'fields', 'field-mm2', 'apart']) {
  $(id).onchange = () => setRule({
    preset: 'own', shape: $('shape').value, fields: Number($('fields').value), field_mm2: Number($('field-mm2').value), apart: $('apart').checked,
  });
}
$('hotspot-move').onclick = () => moveHotspot(!state.moving);
$('hotspot-keep').onclick = () => act(keepHotspot);
$('hotspot-drop').onclick = () => act(dropHotspot);
for (const kind of ['polygon', 'rectangle']) $(kind).onclick = () => act(() => drawRegion(kind));
$('region-undo').onclick = () => act(undoRegion);
$('sign').onclick = () => act(() => sign());
$('reopen').onclick = () => act(() => {
  const why = $('reason').value.trim();
  if (why) return sign(why);
  $('reason').focus();
  return notify('Write why the case is opened again');
});
$('reason').onkeydown = (e) => { if (e.key === 'Enter') { e.preventDefault(); $('reopen').click(); } };
$('comment').onkeydown = (e) => { if (e.key === 'Enter') { e.preventDefault(); comment(); } };
$('add').onclick = () => {
  state.adding = true;
  state.drawing = null;
  viewer.canvas.focus();
  drawn();
  notify('Click the missed figure; by keys: arrows and Space', 8000);
};
// Enter ends the name: the next key is a verdict, not a letter of the name.
$('reviewer').onkeydown = (e) => { if (e.key === 'Enter') { e.preventDefault(); $('reviewer').blur(); } };
$('reviewer').onchange = () => {
  state.reviewer = $('reviewer').value.trim();
  memory.set('reviewer', state.reviewer);
  // Nothing of the reviewer before is taken for hers.
  state.undone = [];
  if (state.figures) forget();
  refresh();
  // What is recorded meanwhile comes after what is loaded.
  state.queue = state.queue.then(async () => {
    try {
      // Blinded, each reviewer has regions of her own; an answer for the reviewer before is not taken.
      if (state.figures && (state.index.blinded || !state.desk)) await desk();
      await reviews();
      refresh();
    } catch (e) { notify(e.message); }
  });
};
for (const b of document.querySelectorAll('[data-verdict]')) b.onclick = () => judge(b.dataset.verdict);
for (const [id, name] of [['toggle-list', 'no-list'], ['toggle-side', 'no-side']]) {
  $(id).onclick = () => $(id).setAttribute('aria-expanded', String(!document.body.classList.toggle(name)));
}

const KEYS = {
  n: () => step(1), p: () => step(-1), z: () => undo(), c: () => $('comment').focus(), g: () => moveHotspot(!state.moving),
  o: () => drawRegion('polygon'), r: () => drawRegion('rectangle'), '+': () => $('add').click(), 0: () => viewer.viewport.goHome(),
  1: () => judge('figure'), 2: () => judge('mimicker'), 3: () => judge('unsure'), 4: () => judge('atypical'), x: () => judge('removed'),
  h: () => { const on = !marks.layers.accepted; layer('accepted', on); layer('rejected', on); },
  d: () => layer('heat', !marks.layers.heat), t: () => layer('tissue', !marks.layers.tissue),
  b: () => { $('blind').checked = !$('blind').checked; $('blind').onchange(); }, m: name,
  j: () => turn(1), k: () => turn(-1),
  '?': () => $('help').showModal(),
};
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== 'range' && e.target.type !== 'checkbox') return;
  const tool = toolKey(e);
  const which = state.naming && /^[1-8]$/.test(e.key) ? Number(e.key) - 1 : null;
  state.naming = false;
  const does = tool || (which === null ? KEYS[e.key] : () => judge(which < 4 ? 'figure' : 'atypical', MORPHOLOGIES[which]));
  if (does && state.index) { e.preventDefault(); e.stopPropagation(); act(does); }
}, true);

/** Moves the slide by parts of the window. */
function pan(dx, dy) {
  const { width, height } = viewer.viewport.getBounds();
  viewer.viewport.panBy(new OpenSeadragon.Point(dx * width, dy * height));
}

/** What a key does while the hotspot is moved or a region is drawn. */
function toolKey(e) {
  if (state.drawing) {
    if (e.key === 'Enter' && e.target.tagName !== 'BUTTON') return endRegion;
    if (e.key === 'Backspace') return undoRegion;
    if (e.key === 'Escape') return () => { state.drawing = null; drawn(); };
  }
  if (state.drawing || state.adding) {
    const by = e.shiftKey ? 0.01 : 0.1;
    const to = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] }[e.key];
    if (to) return () => pan(...to);
    if (e.key === ' ' && e.target.tagName !== 'BUTTON') return () => { const p = middle(); return state.drawing ? corner(p.x, p.y) : addAt(p); };
    if (e.key === 'Escape') return () => { state.adding = false; pointing(); };
  }
  if (state.moving) {
    const by = e.shiftKey ? 250 : 50;
    const to = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] }[e.key];
    if (to) return () => nudge(...to);
    if (e.key === 'Enter' && e.target.tagName !== 'BUTTON') return keepHotspot;
    if (e.key === 'Escape') return () => { state.spot = state.before; moveHotspot(false); };
  }
  return null;
}

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
  $('blind').checked = state.index.blinded || memory.get('blind') === true;
  $('blind').disabled = state.index.blinded;
  $('order').disabled = blinded();
  state.reviewer = memory.get('reviewer') || '';
  $('reviewer').value = state.reviewer;
  const link = new URLSearchParams(location.hash.slice(1));
  const wanted = state.index.slides.findIndex((s) => s.width && s.name === (link.get('slide') || memory.get('slide')));
  const place = link.has('x') ? { x: Number(link.get('x')), y: Number(link.get('y')) } : null;
  const first = wanted >= 0 ? wanted : state.index.slides.findIndex((s) => s.width);
  if (first < 0) return notify('No slide can be read');
  if (matchMedia('(max-width: 50rem)').matches) document.body.classList.add('no-list', 'no-side');
  return open(first, wanted >= 0 ? place : null);
}
start().catch((e) => notify(e.message));
