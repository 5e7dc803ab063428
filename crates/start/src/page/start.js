// The start page: lists folders of the computer that the program runs on, keeps what was chosen, and follows the run.

import { $, get, post } from './common.js';

const POLL = 700;
let models = [];
let here = null;
/** Chosen slides: id, name, path, look. */
let chosen = [];
/** Number of the run whose results were shown last. */
let shown = 0;
let state = null;
/** The run whose results are on the page. */
let run = null;
/** Whether the folder for results was typed, or regions were drawn into it. */
let typed = false;
/** Folder of the regions that are drawn before anything is searched. */
let drawn = null;

const STATES = {
  waiting: 'waits', running: 'at work', finished: 'done', 'no-tissue': 'done, no tissue found', kept: 'done before',
  failed: 'failed', interrupted: 'interrupted', elsewhere: 'another program is at work on it',
};
const PHASES = {
  opening: 'Opening the networks and checking the slides …', running: 'Searching …', cancelling: 'Cancelling: the current windows are finished first …',
  cancelled: 'Cancelled. What was found so far is kept, and can be continued.', done: 'Done.', failed: 'Detection did not run.',
};

function make(tag, text, set = {}) {
  const element = Object.assign(document.createElement(tag), set);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Runs something that may be refused; the words go where they belong. */
async function attempt(errorId, act) {
  $(errorId).textContent = '';
  try {
    return await act();
  } catch (e) {
    $(errorId).textContent = e.message;
    return undefined;
  }
}

const bytes = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} GB` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} MB` : `${Math.max(1, Math.round(n / 1e3))} kB`);
const time = (s) => (s < 90 ? `${Math.max(1, Math.round(s))} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`);
const one = (v) => (v >= 100 ? v.toFixed(0) : v.toFixed(1));
const range = (i) => (i ? `${one(i[0])} – ${one(i[1])}` : '');
/** A decimal with point or comma; null for nothing. */
function decimal(id, what) {
  const text = $(id).value.trim().replace(',', '.');
  if (!text) return null;
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new Error(`${what}: "${$(id).value}" is not a number above 0`);
  return value;
}

// 1. Folders.

async function list(path) {
  await attempt('list-error', async () => {
    here = await post('api/list', { path });
    $('path').value = here.path;
    sessionStorage.setItem('at', here.path);
    entries();
  });
}

function entries() {
  const all = $('all').checked;
  const seen = here.entries.filter((e) => all || e.kind !== 'other');
  $('entries').replaceChildren(...seen.map(entry));
  if (!seen.length) $('entries').append(make('li', 'Nothing here that looks like a slide.', { className: 'soft' }));
  $('up').disabled = !here.parent;
  $('open-run').hidden = here.kind !== 'run';
  const notes = [];
  if (here.cut) notes.push(`${here.cut} more entries are not shown.`);
  if (here.unnamed) notes.push(`${here.unnamed} entries have names that a page cannot show; rename them first.`);
  $('list-note').textContent = notes.join(' ');
}

function entry(e) {
  const li = make('li');
  if (e.kind === 'folder' || e.kind === 'run') {
    const button = make('button', `${e.name}/`, { type: 'button', className: 'plain name' });
    button.onclick = async () => { await list(e.path); $('path').focus(); };
    li.append(button);
    if (e.kind === 'run') {
      const results = make('button', 'Show results', { type: 'button', ariaLabel: `Show the results in ${e.name}` });
      results.onclick = () => results_of(e.path);
      li.append(results);
    }
  } else if (e.kind === 'regions' || e.kind === 'table' || e.kind === 'other') {
    li.append(make('span', e.name, { className: 'name' }));
  } else {
    const label = make('label', undefined, { className: 'name' });
    label.append(make('input', undefined, { type: 'checkbox', value: e.path }), ` ${e.name}`);
    li.append(label);
  }
  if (e.kind === 'regions' || e.kind === 'table') {
    const use = make('button', `Use as ${e.kind}`, { type: 'button', ariaLabel: `Use ${e.name} as ${e.kind}` });
    use.onclick = () => { $(e.kind).value = e.path; $(e.kind).focus(); };
    li.append(use);
  }
  if (e.size !== null) li.append(make('span', bytes(e.size), { className: 'soft' }));
  return li;
}

async function add(paths) {
  if (!paths.length) { $('list-error').textContent = 'No slide is ticked.'; return; }
  await attempt('list-error', async () => {
    const { slides, notes } = await post('api/choose', { paths });
    $('list-note').textContent = notes.join('; ');
    for (const s of slides) if (!chosen.some((c) => c.id === s.id)) chosen.push(s);
    await propose();
    document.querySelectorAll('#entries input:checked').forEach((box) => { box.checked = false; });
    keep();
    table();
    await look(slides.map((s) => s.id));
  });
}

/** Proposes a new folder for the results, unless one was typed. */
async function propose() {
  if (typed || !chosen.length) return;
  const { out } = await post('api/choose', { paths: chosen.map((c) => c.path) });
  $('out').value = out;
}

function keep() {
  sessionStorage.setItem('chosen', JSON.stringify(chosen.map((c) => c.path)));
}

/** Asks for each of these slides what it is, one after the other: every one is opened for it. */
async function look(ids) {
  for (const id of ids) {
    const slide = chosen.find((c) => c.id === id);
    if (!slide) continue;
    try {
      slide.look = await post('api/look', { id, model: $('model').value, mpp: decimal('mpp', 'µm per pixel') });
    } catch (e) {
      slide.look = { usable: false, error: e.message };
    }
    table();
  }
}

function table() {
  $('none').hidden = chosen.length > 0;
  $('chosen').hidden = chosen.length === 0;
  const body = $('chosen').tBodies[0];
  const held = document.activeElement?.dataset?.id;
  body.replaceChildren(...chosen.map(line));
  if (held) body.querySelector(`[data-id="${held}"]`)?.focus();
  const usable = chosen.filter((c) => c.look?.usable).length;
  const looking = chosen.some((c) => !c.look);
  const busy = state && ['opening', 'running', 'cancelling'].includes(state.phase);
  $('start').disabled = busy || looking || !usable;
  const failing = chosen.filter((c) => c.look && !c.look.usable).length;
  $('start-note').textContent = busy ? 'A run is at work.' : looking ? 'The slides are being looked at …' : !chosen.length ? 'Choose slides first.'
    : failing ? `${failing} of ${chosen.length} slides cannot be used and will fail.` : `${usable} of ${chosen.length} slides can be used.`;
}

function line(c) {
  const tr = make('tr');
  const { look: l } = c;
  const picture = make('td');
  if (l && l.width) picture.append(make('img', undefined, { src: `picture/${c.id}.jpg`, alt: `The whole slide ${c.name}` }));
  const remarks = make('td');
  if (!l) remarks.append(make('span', 'is being looked at …', { className: 'soft' }));
  if (l?.error) remarks.append(make('div', l.error, { className: 'fault' }));
  for (const w of l?.warnings ?? []) remarks.append(make('div', w, { className: 'warning' }));
  const off = make('td');
  const button = make('button', 'Take out', { type: 'button', ariaLabel: `Take ${c.name} out` });
  button.dataset.id = c.id;
  button.onclick = async () => { chosen = chosen.filter((o) => o !== c); keep(); table(); $('h-choose').focus(); await propose(); };
  const draw = make('button', 'Draw regions', { type: 'button', ariaLabel: `Draw regions on ${c.name}`, hidden: !l?.width });
  draw.onclick = () => attempt('list-error', async () => {
    const { url, regions } = await post('api/view', { path: c.path, out: $('out').value.trim() });
    // They are in the folder for the results, which stays what it is.
    [typed, drawn] = [true, regions];
    sessionStorage.setItem('drawn', JSON.stringify({ out: $('out').value.trim(), regions }));
    const a = link(`Draw regions on ${c.name}`, url);
    $('list-note').replaceChildren(a);
    a.click();
  });
  off.append(draw, button);
  const mpp = l?.mpp ? [...new Set(l.mpp.map((v) => v.toFixed(4)))].join(' × ') : l?.width ? 'not stated' : '';
  tr.append(picture, make('td', c.name, { title: c.path }), make('td', l?.width ? `${l.width} × ${l.height} px` : ''), make('td', mpp, { title: l?.mpp_source ?? '' }), make('td', l?.width ? l.scanner ?? 'not stated' : ''), remarks, off);
  return tr;
}

// 2. Settings.

function points() {
  const model = models.find((m) => m.name === $('model').value);
  const options = model.points.map((p) => make('option', p.own ? `${p.name} (the model's own)` : p.name, { value: p.name, selected: p.own }));
  if (!model.points.some((p) => p.own)) options.unshift(make('option', "the model's own", { value: '', selected: true }));
  $('point').replaceChildren(...options);
  expect();
}

function expect() {
  const model = models.find((m) => m.name === $('model').value);
  const p = model.points.find((q) => q.name === $('point').value);
  $('point-help').textContent = p ? `On the model's test images ${Math.round(100 * p.precision)} % of what it accepted were figures, and it accepted ${Math.round(100 * p.recall)} % of the figures.` : '';
}

async function begin(existing) {
  await attempt('start-error', async () => {
    $('exists').hidden = true;
    const ask = {
      slides: chosen.map((c) => c.id), regions: $('regions').value.trim() || null,
      table: $('table').value.trim() || null, model: $('model').value, point: $('point').value || null,
      mpp: decimal('mpp', 'µm per pixel'), out: $('out').value.trim(), existing,
    };
    show(await post('api/start', ask));
    sessionStorage.setItem('ask', JSON.stringify(ask));
    if (drawn) {
      [typed, drawn] = [false, null];
      sessionStorage.removeItem('drawn');
    }
    $('h-run').focus();
    follow();
  });
}

// 3. The run.

let timer = null;
function follow() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    try {
      show(await get('api/run'));
      $('gone').hidden = true;
    } catch {
      $('gone').hidden = false;
    }
    follow();
  }, POLL);
}

function words(id, text) {
  // A screen reader hears what changed, not what is repeated.
  if ($(id).textContent !== text) $(id).textContent = text;
}

function show(s) {
  const before = state;
  state = s;
  const busy = ['opening', 'running', 'cancelling'].includes(s.phase);
  $('run').hidden = s.phase === 'idle' || (s.phase === 'failed' && s.exists);
  if (before?.phase !== s.phase || before?.number !== s.number) table();
  if (s.phase === 'idle') return;
  words('phase', s.phase === 'failed' ? `${PHASES.failed} ${s.error ?? ''}` : PHASES[s.phase]);
  $('phase').className = s.phase === 'failed' ? 'fault' : '';
  if (s.phase === 'failed' && s.exists && (before?.phase !== 'failed' || before.number !== s.number)) {
    $('start-error').textContent = s.error;
    $('exists').hidden = false;
  }
  $('cancel').hidden = !busy;
  $('cancel').disabled = s.phase === 'cancelling';
  $('resume').hidden = s.phase !== 'cancelled';
  const part = s.slides.reduce((sum, x) => sum + (x.status === 'waiting' ? 0 : x.status === 'running' ? (x.total ? x.done / x.total : 0) : 1), 0);
  if (s.phase === 'opening') $('bar').removeAttribute('value'); else $('bar').value = s.slides.length ? part / s.slides.length : 0;
  $('bar').hidden = !busy;
  $('bar-label').hidden = !busy;
  const now = s.slides.find((x) => x.status === 'running');
  const left = now?.eta_seconds != null ? now.eta_seconds + (s.eta_seconds ? s.eta_seconds * Math.max(0, s.slides.length - s.done - 1) / Math.max(1, s.slides.length - s.done) : 0) : null;
  const facts = [`${s.done} of ${s.slides.length} slides`];
  if (now?.total) facts.push(`${now.name}: ${now.done} of ${now.total} ${now.unit}, ${one(now.rate)} per second`);
  if (left !== null) {
    const all = s.eta_seconds != null || s.slides.length - s.done === 1;
    facts.push(`about ${time(left)} left${all ? '' : ' for this slide'}`);
  }
  $('rate').textContent = busy ? facts.join('; ') : '';
  words('remarks', s.remarks.join(' '));
  $('slides').tBodies[0].replaceChildren(...s.slides.map((x) => {
    const tr = make('tr');
    const cell = make('td', STATES[x.status] ?? x.status);
    if (x.reason) cell.append(make('div', x.reason, { className: 'fault' }));
    const far = make('td');
    if (x.status === 'running' && x.total) far.append(make('progress', undefined, { className: 'small', max: x.total, value: x.done, ariaLabel: `Progress of ${x.name}` }));
    else if (x.seconds) far.append(time(x.seconds));
    tr.append(make('td', x.name), cell, far);
    return tr;
  }));
  if (['done', 'cancelled'].includes(s.phase) && shown !== s.number) {
    shown = s.number;
    results_of(s.out);
  }
}

// 4. Results.

async function results_of(path) {
  await attempt('list-error', async () => {
    const r = await post('api/results', { path });
    run = path;
    $('results').hidden = false;
    $('links').replaceChildren();
    $('results-error').textContent = '';
    results_now(r);
    $('h-results').focus();
  });
}

/** Shows what a run gave, and who reviewed it. */
function results_now(r) {
  $('folder').textContent = r.out;
  const failed = r.slides.filter((s) => s.figures === undefined).length;
  words('results-note', `${r.slides.length} ${r.slides.length === 1 ? 'slide' : 'slides'}${failed ? `, ${failed} of them without a result` : ''}${r.unfinished.length ? `; not finished: ${r.unfinished.join(', ')}` : ''}.`);
  $('counts').tBodies[0].replaceChildren(...r.slides.map(count));
  $('view').disabled = !r.counted;
  $('report').disabled = !r.counted;
  const was = $('reviewer').value;
  $('review-field').hidden = !r.reviewers.length;
  $('reviewer').replaceChildren(...r.reviewers.map((name) => make('option', name.replaceAll('+', ' and '), { value: name })));
  if (r.reviewers.includes(was)) $('reviewer').value = was;
}

/** Takes the regions that were drawn meanwhile, unless others are named. */
async function take() {
  if (!drawn || $('regions').value.trim()) return;
  const { found } = await post('api/drawn', { path: drawn });
  if (!found) return;
  $('regions').value = drawn;
  $('list-note').textContent = 'Only the regions that were drawn will be searched.';
}

// Slides are reviewed and regions drawn in another tab: who comes back from there finds the names.
document.addEventListener('visibilitychange', async () => {
  if (document.hidden) return;
  await attempt('list-error', take);
  if (!run) return;
  await attempt('results-error', async () => results_now(await post('api/results', { path: run })));
});

function count(s) {
  const tr = make('tr');
  tr.append(make('td', s.name));
  const n = (text) => make('td', text, { className: 'n' });
  const remarks = make('td');
  if (s.figures === undefined) {
    tr.append(n(''), n(''), n(''), n(''), n(''));
    remarks.append(make('div', s.reason ?? s.status, { className: 'fault' }));
  } else {
    const density = s.density_per_20_mm2 === null ? '' : `${one(s.density_per_20_mm2)} (${range(s.density_95)})`;
    tr.append(n(s.figures), n(range(s.figures_95)), n(`${s.hotspot_count} (${range(s.hotspot_95)})`), n(density), n(s.analysed_mm2.toFixed(2)));
    if (s.status === 'no-tissue') remarks.append(make('div', 'no tissue found', { className: 'warning' }));
    for (const note of s.notes) remarks.append(make('div', note, { className: s.meaningless ? 'fault' : 'warning' }));
  }
  const by = s.reviewed;
  tr.append(make('td', by ? `${by.figures}, hotspot ${by.placed ? `${by.placed.figures} in ${Number(by.placed.area_mm2.toFixed(3))} mm²` : by.hotspot_count} (${by.reviewer})` : ''), remarks);
  return tr;
}

function link(text, url) {
  return make('a', text, { href: url, target: '_blank', rel: 'noopener' });
}

// What the page does.

$('go').onsubmit = async (e) => {
  e.preventDefault();
  const path = $('path').value.trim();
  const files = here?.entries.find((x) => x.path === path);
  if (files && !['folder', 'run'].includes(files.kind)) { await add([path]); return; }
  await list(path);
  // A file is typed as well as a folder.
  if ($('list-error').textContent.includes('is a file')) await add([path]);
};
$('up').onclick = () => here?.parent && list(here.parent);
$('all').onchange = entries;
$('add').onclick = () => add([...document.querySelectorAll('#entries input:checked')].map((b) => b.value));
$('add-folder').onclick = () => here && add([here.path]);
$('open-run').onclick = () => results_of(here.path);
$('model').onchange = async () => { points(); await look(chosen.map((c) => c.id)); };
$('mpp').onchange = () => look(chosen.map((c) => c.id));
$('point').onchange = expect;
$('out').oninput = () => { typed = true; };
$('start').onclick = () => begin('refuse');
document.querySelectorAll('[data-existing]').forEach((b) => { b.onclick = () => begin(b.dataset.existing); });
$('cancel').onclick = () => attempt('start-error', async () => show(await post('api/cancel', {})));
$('resume').onclick = () => attempt('start-error', async () => {
  const ask = JSON.parse(sessionStorage.getItem('ask') ?? 'null');
  if (!ask) throw new Error('this window did not start the run; choose its slides and its folder again, and start');
  show(await post('api/start', { ...ask, existing: 'resume' }));
});
$('view').onclick = () => attempt('results-error', async () => {
  const { url } = await post('api/view', { path: run });
  const a = link('Open the viewer', url);
  $('links').replaceChildren(a);
  a.click();
});
$('recount').onclick = () => attempt('results-error', async () => {
  results_now(await post('api/recount', { path: run, reviewer: $('reviewer').value }));
  $('links').textContent = 'Counted with the review; the report shows the reviewed numbers.';
});
$('scheme').onchange = () => { $('diameter-field').hidden = $('scheme').value !== 'nottingham'; };
$('report').onclick = () => attempt('results-error', async () => {
  $('links').textContent = 'The report is being made …';
  try {
    const scheme = $('scheme').value || null;
    const { folder, pages } = await post('api/report', { path: run, scheme, field_diameter: scheme === 'nottingham' ? decimal('diameter', 'Field diameter') : null });
    $('links').replaceChildren('Reports (PDF): ');
    for (const p of pages) $('links').append(link(p.name, p.url), ' ');
    $('links').append(`in ${folder}`);
  } catch (e) {
    $('links').replaceChildren();
    throw e;
  }
});
$('reveal').onclick = () => attempt('results-error', () => post('api/reveal', { path: run }));

const first = await get('api/begin');
models = first.models;
$('version').textContent = first.version;
$('model').replaceChildren(...models.map((m) => make('option', m.name, { value: m.name })));
points();
$('places').replaceChildren(...first.places.map((p) => {
  const b = make('button', p.name, { type: 'button' });
  b.onclick = () => list(p.path);
  return b;
}));
state = await get('api/run');
const at = sessionStorage.getItem('at') ?? first.at;
if (at) await list(at);
show(state);
follow();
const before = JSON.parse(sessionStorage.getItem('drawn') ?? 'null');
if (before) {
  [typed, drawn] = [true, before.regions];
  $('out').value = before.out;
}
const paths = JSON.parse(sessionStorage.getItem('chosen') ?? '[]');
if (paths.length) await add(paths);
await attempt('list-error', take);
document.body.dataset.ready = 'true';
