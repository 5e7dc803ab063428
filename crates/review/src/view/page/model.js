// What the page computes: which candidates are figures at the chosen thresholds, where the hotspot is, how dense.

/** Half the side of the hotspot, um: of a square of 2 mm2. */
export const HALF_UM = Math.SQRT2 / 2 * 1000;

/** How near to each other two places are one cell, um. */
export const RADIUS_UM = 7.5;

/** Whether a word makes a figure; null where it decides nothing. */
const isFigure = (word) => {
  if (word === 'figure' || word === 'atypical') return true;
  return word === 'mimicker' || word === 'removed' ? false : null;
};

/** Candidates of a slide as columns, with the reviewers' corrections on top. */
export class Figures {
  constructor(detail) {
    const c = detail.columns;
    this.x = Float64Array.from(c.x);
    this.y = Float64Array.from(c.y);
    this.seg = Float32Array.from(c.s_seg);
    this.cls = Float32Array.from(c.s_cls, (v) => (v === null ? NaN : v));
    this.outside = Uint8Array.from(c.outside);
    this.flaw = c.flaw;
    this.atypical = c.p_atypical ? Float32Array.from(c.p_atypical, (v) => (v === null ? NaN : v)) : null;
    this.morphology = c.morphology || null;
    this.mpp = detail.mpp;
    this.analysed = detail.analysed_mm2;
    this.searched = detail.searched;
    // All that were ever added, with the reviewer's last word, and the candidate that each is at.
    this.missed = [];
    this.at = new Map();
    this.verdict = new Map();
    this.comment = new Map();
    this.accepted = new Uint8Array(this.x.length);
    // Made once: every mark asks for its key whenever it is drawn.
    this.keys = Array.from(this.x, (x, i) => `${x.toFixed(2)},${this.y[i].toFixed(2)}`);
  }

  get length() {
    return this.x.length;
  }

  /** The key that a reviewer's verdict names a candidate by. */
  key(i) {
    return this.keys[i];
  }

  /** The figures that the reviewer added. */
  get added() {
    return this.missed.filter((a) => isFigure(a.verdict));
  }

  /** Takes a word about an added figure; null withdraws the one before. */
  add({ key, x, y, verdict }) {
    this.missed = this.missed.filter((a) => a.key !== key);
    if (verdict) this.missed.push({ key, x, y, verdict });
  }

  /** um between two places. */
  apart([ax, ay], [bx, by]) {
    return Math.hypot((ax - bx) * this.mpp[0], (ay - by) * this.mpp[1]);
  }

  /** The nearest candidate to an added figure within the radius; null without one. */
  nearest(a) {
    if (!this.at.has(a.key)) {
      let [best, least] = [null, RADIUS_UM];
      for (let i = 0; i < this.length; i++) {
        if (Math.abs(this.x[i] - a.x) * this.mpp[0] > least) continue;
        const um = this.apart([this.x[i], this.y[i]], [a.x, a.y]);
        if (um < least || (um === least && best === null)) [best, least] = [i, um];
      }
      this.at.set(a.key, best);
    }
    return this.at.get(a.key);
  }

  /** Key and place of a candidate, or beyond them of an added figure; null where absent. */
  place(i) {
    if (i < this.length) return { key: this.key(i), x: this.x[i], y: this.y[i], added: false };
    const a = this.added[i - this.length];
    return a ? { key: a.key, x: a.x, y: a.y, added: true } : null;
  }

  /** Accepted as the program accepts: both scores reach their thresholds (the first alone where no second stage ran), on tissue. */
  accept({ seg, cls }) {
    // Scores and thresholds are single precision in the program.
    const [first, second] = [Math.fround(seg), Math.fround(cls)];
    for (let i = 0; i < this.x.length; i++) {
      const passes = Number.isNaN(this.cls[i]) || this.cls[i] >= second;
      this.accepted[i] = this.seg[i] >= first && passes && !this.outside[i] ? 1 : 0;
    }
  }

  /** What counts: the reviewer's word where there is one, else the network's. */
  counts(i) {
    return isFigure(this.verdict.get(this.key(i))) ?? this.accepted[i] === 1;
  }

  /** Places of all that counts, each once: [x, y] in level-0 px. */
  counted() {
    const { hit, free } = joined(this);
    const out = [];
    for (let i = 0; i < this.x.length; i++) if (this.counts(i) || hit.has(i)) out.push([this.x[i], this.y[i]]);
    return out.concat(free);
  }
}

/**
 * The candidates that added figures are at, and the places of the other added figures, of which those near each other are one. As the
 * program joins them (`view::places`).
 */
function joined(figures) {
  const all = [...figures.missed].sort((a, b) => (a.key < b.key ? -1 : 1));
  if (!figures.mpp) return { hit: new Set(), free: figures.added.map((a) => [a.x, a.y]) };
  // Who rejects a candidate and adds a figure near it means two cells.
  const rejected = (i) => i !== null && isFigure(figures.verdict.get(figures.key(i))) === false;
  const two = new Set(all.filter((a) => isFigure(a.verdict)).map((a) => figures.nearest(a)).filter(rejected));
  const [hit, free] = [new Set(), []];
  for (const a of all) {
    const i = figures.nearest(a);
    if (i === null || two.has(i)) free.push(a);
    else if (isFigure(a.verdict)) hit.add(i);
  }
  return { hit, free: groups(figures, free) };
}

/** The first place of each group of places that has a figure: nearest pairs first, and every two of a group within the radius. */
function groups(figures, free) {
  const um = (i, j) => figures.apart([free[i].x, free[i].y], [free[j].x, free[j].y]);
  const pairs = [];
  for (let i = 0; i < free.length; i++) {
    for (let j = i + 1; j < free.length; j++) {
      if (Math.abs(free[i].x - free[j].x) * figures.mpp[0] <= RADIUS_UM && um(i, j) <= RADIUS_UM) pairs.push([um(i, j), i, j]);
    }
  }
  pairs.sort((p, q) => p[0] - q[0] || p[1] - q[1] || p[2] - q[2]);
  const first = [...free.keys()];
  const members = free.map((_, i) => [i]);
  for (const [, i, j] of pairs) {
    const [a, b] = [Math.min(first[i], first[j]), Math.max(first[i], first[j])];
    if (a === b || !members[a].every((p) => members[b].every((q) => um(p, q) <= RADIUS_UM))) continue;
    for (const q of members[b]) first[q] = a;
    members[a].push(...members[b]);
    members[b] = [];
  }
  return members.filter((m) => m.some((i) => isFigure(free[i].verdict))).map(([i]) => [free[i].x, free[i].y]);
}

/** First place in sorted `all` whose value is not `below`. */
function place(all, below) {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (below(all[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Figures in the square of half a side `half` um around each point, itself included. */
function squareCounts(um, half) {
  const n = um.length;
  const [xs, ys] = [0, 1].map((axis) => Float64Array.from(um, (p) => p[axis]).sort());
  const span = (all, at) => [place(all, (v) => v - at < -half), place(all, (v) => v - at <= half)];
  const rank = new Int32Array(n);
  const columns = [...um.keys()].sort((a, b) => um[a][0] - um[b][0]);
  columns.forEach((i, k) => { rank[i] = k; });
  const rows = columns.sort((a, b) => um[a][1] - um[b][1]);
  // What is asked when so many rows are in: row, point, and whether it is the upper edge, in one number.
  const asked = new Float64Array(2 * n);
  um.forEach((p, i) => {
    const [low, high] = span(ys, p[1]);
    asked[2 * i] = low * 2 * n + 2 * i;
    asked[2 * i + 1] = high * 2 * n + 2 * i + 1;
  });
  asked.sort();
  const tree = new Int32Array(n + 1);
  const below = (end) => {
    let sum = 0;
    for (let i = end; i > 0; i -= i & -i) sum += tree[i];
    return sum;
  };
  const counts = new Int32Array(n);
  let inside = 0;
  for (const key of asked) {
    const row = Math.floor(key / (2 * n));
    const rest = key - row * 2 * n;
    const [i, added] = [rest >> 1, rest & 1];
    for (; inside < row; inside++) for (let k = rank[rows[inside]] + 1; k <= n; k += k & -k) tree[k] += 1;
    const [low, high] = span(xs, um[i][0]);
    const sum = below(high) - below(low);
    counts[i] = added ? sum - counts[i] : sum;
  }
  return counts;
}

/** Figures in the circle of `radius` um around each point, itself included. */
function circleCounts(um, radius) {
  const cells = new Map();
  const cell = ([x, y]) => [Math.floor(x / radius), Math.floor(y / radius)];
  um.forEach((p, i) => {
    const k = cell(p).join();
    if (!cells.has(k)) cells.set(k, []);
    cells.get(k).push(i);
  });
  return Int32Array.from(um, (p) => {
    const [cx, cy] = cell(p);
    let n = 0;
    for (let dx = -1; dx <= 1; dx++) {
      for (let dy = -1; dy <= 1; dy++) {
        for (const i of cells.get(`${cx + dx},${cy + dy}`) || []) if (Math.hypot(um[i][0] - p[0], um[i][1] - p[1]) <= radius) n += 1;
      }
    }
    return n;
  });
}

/** The rule of the paper, which the program's own hotspot follows: one square of 2 mm2. */
export const PAPER_RULE = { preset: 'paper', shape: 'square', fields: 1, field_mm2: 2, apart: false };

/** Half a side or the radius, um, of one part of a rule: all fields in one, or each by itself. */
export function reach(rule) {
  if (rule.shape === 'square' && !rule.apart && rule.fields * rule.field_mm2 === 2) return HALF_UM;
  const mm2 = rule.apart ? rule.field_mm2 : rule.fields * rule.field_mm2;
  return rule.shape === 'square' ? Math.sqrt(mm2) / 2 * 1000 : Math.sqrt(mm2 / Math.PI) * 1000;
}

/** Strips by which circles that overlap or are cut are measured, as in the program. */
const STRIPS = 16384;

/** Strips where regions cut a hotspot, too: fewer, because every region is looked at in each. */
const REGION_STRIPS = 1024;

/** Edges of regions, um, of each region those that reach into these heights. */
function regionEdges(regions, mpp, top, below) {
  const edge = (a, b) => [a[0] * mpp[0], a[1] * mpp[1], b[0] * mpp[0], b[1] * mpp[1]];
  const near = ([, ay, , by]) => Math.min(ay, by) <= below && Math.max(ay, by) >= top;
  return regions.map(({ rings }) => rings.flatMap((ring) => ring.slice(1).map((p, k) => edge(ring[k], p))).filter(near));
}

/** The parts of a line across that are inside any region, um. */
function regionSpans(edges, y) {
  return merged(edges.flatMap((of) => {
    const xs = of.filter(([, ay, , by]) => (ay > y) !== (by > y)).map(([ax, ay, bx, by]) => ax + ((y - ay) / (by - ay)) * (bx - ax));
    xs.sort((a, b) => a - b);
    return xs.flatMap((x, k) => (k % 2 ? [[xs[k - 1], x]] : []));
  }));
}

/** Spans without those parts that several of them share. */
function merged(spans) {
  const all = [];
  for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
    const last = all.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else if (to > from) all.push([from, to]);
  }
  return all;
}

/**
 * The part of a hotspot on a slide of this size in px, mm2: what hangs over the edge was not looked at, and what two fields share counts
 * once. With regions only what is in one of them was. As the program measures (`mitosis::hotspots`, `view::searched`).
 */
export function onSlideMm2(rule, centres, mpp, [width, height], regions = []) {
  const far = reach(rule);
  const [w, h] = [width * mpp[0], height * mpp[1]];
  const um = centres.map(([x, y]) => [x * mpp[0], y * mpp[1]]);
  if (!um.length) return 0;
  const clipped = (at, most) => Math.max(Math.min(at + far, most) - Math.max(at - far, 0), 0);
  if (!regions.length && um.length === 1 && rule.shape === 'square') return clipped(um[0][0], w) * clipped(um[0][1], h) * 1e-6;
  const whole = ([x, y]) => x >= far && y >= far && x + far <= w && y + far <= h;
  const meet = (a, b) => (rule.shape === 'square'
    ? Math.max(Math.abs(a[0] - b[0]), Math.abs(a[1] - b[1])) < 2 * far
    : Math.hypot(a[0] - b[0], a[1] - b[1]) < 2 * far);
  const met = um.some((a, i) => um.slice(i + 1).some((b) => meet(a, b)));
  if (!regions.length && !met && um.every(whole)) return (rule.apart ? rule.field_mm2 : rule.fields * rule.field_mm2) * um.length;
  const top = Math.max(Math.min(...um.map((p) => p[1] - far)), 0);
  const below = Math.min(Math.max(...um.map((p) => p[1] + far)), h);
  const high = Math.max(below - top, 0);
  // Between the edges of squares all lines are alike.
  const borders = regionEdges(regions, mpp, top, below);
  const cutInto = (n) => Array.from({ length: n + 1 }, (_, k) => top + (high * k) / n);
  const level = rule.shape === 'square' ? um.flatMap((p) => [p[1] - far, p[1] + far]) : [];
  const fine = regions.length ? cutInto(REGION_STRIPS) : rule.shape === 'square' ? [] : cutInto(STRIPS);
  const edges = [...level, ...fine, ...borders.flat().map((e) => e[1])];
  const strips = Float64Array.from(edges, (y) => Math.min(Math.max(y, top), top + high)).sort();
  let sum = 0;
  for (let k = 0; k + 1 < strips.length; k++) {
    if (strips[k + 1] <= strips[k]) continue;
    const y = (strips[k] + strips[k + 1]) / 2;
    const spans = [];
    for (const p of um) {
      if (Math.abs(y - p[1]) > far) continue;
      const half = rule.shape === 'square' ? far : Math.sqrt(far * far - (y - p[1]) ** 2);
      spans.push([Math.max(p[0] - half, 0), Math.min(p[0] + half, w)]);
    }
    const parts = merged(spans);
    const searched = regions.length ? regionSpans(borders, y) : [[0, w]];
    let covered = 0;
    for (const [from, to] of parts) {
      for (const [left, right] of searched) covered += Math.max(Math.min(to, right) - Math.max(from, left), 0);
    }
    sum += (strips[k + 1] - strips[k]) * covered;
  }
  const mm2 = sum * 1e-6;
  return regions.length ? Math.min(mm2, onSlideMm2(rule, centres, mpp, [width, height])) : mm2;
}

/** An area in mm2 without zeros at its end. */
export const mm2Text = (mm2) => mm2.toFixed(3).replace(/\.?0+$/, '');

/** Figures in a part of a hotspot centred on [x, y], level-0 px; the border belongs to it. */
export function countWithin(points, mpp, rule, [x, y]) {
  const far = reach(rule);
  const inside = rule.shape === 'square'
    ? (dx, dy) => Math.abs(dx) <= far && Math.abs(dy) <= far
    : (dx, dy) => Math.hypot(dx, dy) <= far;
  return points.filter((p) => inside(p[0] * mpp[0] - x * mpp[0], p[1] * mpp[1] - y * mpp[1])).length;
}

/** Figures in any part of a hotspot, each once. */
export function countOf(points, mpp, rule, centres) {
  if (centres.length === 1) return countWithin(points, mpp, rule, centres[0]);
  return points.filter((p) => centres.some((c) => countWithin([p], mpp, rule, c) === 1)).length;
}

/**
 * The densest places by a rule: `most` hotspots, each centred on a figure, that do not overlap, densest first; of equal ones the topmost,
 * then the leftmost. Where the fields of a rule may be apart there is one hotspot of that many fields. Empty without figures or um/px.
 */
export function hotspots(points, mpp, rule = PAPER_RULE, most = 3) {
  if (!points.length || !mpp) return [];
  const far = reach(rule);
  const um = points.map(([x, y]) => [x * mpp[0], y * mpp[1]]);
  const counts = rule.shape === 'square' ? squareCounts(um, far) : circleCounts(um, far);
  const order = [...um.keys()].sort((a, b) => counts[b] - counts[a] || points[a][1] - points[b][1] || points[a][0] - points[b][0]);
  const apart = rule.shape === 'square'
    ? (a, b) => Math.max(Math.abs(a[0] - b[0]), Math.abs(a[1] - b[1])) > 2 * far
    : (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) > 2 * far;
  const chosen = [];
  const wanted = rule.apart ? rule.fields : most;
  for (const i of order) {
    if (chosen.length === wanted) break;
    if (chosen.every((j) => apart(um[i], um[j]))) chosen.push(i);
  }
  if (rule.apart) return [{ count: chosen.reduce((n, i) => n + counts[i], 0), centres: chosen.map((i) => points[i]) }];
  return chosen.map((i) => ({ count: counts[i], centres: [points[i]] }));
}

/**
 * The 2 mm2 square centred on a figure that holds most figures; null without figures or um/px.
 * As the program counts (`mitosis::crowd`): one sweep over rows with sums over columns, however crowded
 * they are, and the border decided by one plain comparison per axis in um.
 */
export function hotspot(points, mpp) {
  const [spot] = hotspots(points, mpp, PAPER_RULE, 1);
  if (!spot) return null;
  const [x, y] = spot.centres[0];
  const corner = (sign) => [(x * mpp[0] + sign * HALF_UM) / mpp[0], (y * mpp[1] + sign * HALF_UM) / mpp[1]];
  return { count: spot.count, x, y, min: corner(-1), max: corner(1) };
}

/** Whether a place is inside a ring of corners. */
export function inside(ring, [x, y]) {
  let odd = false;
  ring.forEach(([ax, ay], k) => {
    const [bx, by] = ring[(k + 1) % ring.length];
    if ((ay > y) !== (by > y) && x < ax + (y - ay) / (by - ay) * (bx - ax)) odd = !odd;
  });
  return odd;
}

/** Size of a ring that does not cross itself, mm2. */
export function ringMm2(ring, mpp) {
  const cross = ring.reduce((sum, [ax, ay], k) => {
    const [bx, by] = ring[(k + 1) % ring.length];
    return sum + (ax - ring[0][0]) * (by - ring[0][1]) - (bx - ring[0][0]) * (ay - ring[0][1]);
  }, 0);
  return Math.abs(cross) / 2 * mpp[0] * mpp[1] * 1e-6;
}

/** An order of candidates that knows nothing of their scores, the same every time: by a hash of the place. */
export function shuffled(figures) {
  const hash = (text) => {
    let h = 2166136261;
    for (const c of text) h = Math.imul(h ^ c.charCodeAt(0), 16777619);
    h ^= h >>> 15;
    h = Math.imul(h, 2246822507);
    return (h ^ (h >>> 13)) >>> 0;
  };
  const keys = Float64Array.from(figures.keys, hash);
  return [...figures.x.keys()].sort((a, b) => keys[a] - keys[b] || a - b);
}

/** Figures per square millimetre on a grid of 0.5 mm, for the heat map. */
export function density(points, mpp) {
  const side = [500 / mpp[0], 500 / mpp[1]];
  const cells = new Map();
  for (const [x, y] of points) {
    const k = `${Math.floor(x / side[0])}:${Math.floor(y / side[1])}`;
    cells.set(k, (cells.get(k) || 0) + 1);
  }
  return [...cells].map(([k, n]) => {
    const [cx, cy] = k.split(':').map(Number);
    return { x: cx * side[0], y: cy * side[1], w: side[0], h: side[1], perMm2: n / 0.25 };
  });
}

/**
 * How far those who judged a candidate differ: 0 where nobody did, 1 where all agree with each other and the network, 2 where all
 * agree against the network, 3 where they differ, 4 at most with as many votes for as against. `voices` are the verdicts, by reviewer and key.
 */
export function disagreement(figures, voices, i) {
  const key = figures.key(i);
  let [yes, no, unsure] = [0, 0, 0];
  for (const verdicts of Object.values(voices)) {
    const v = verdicts[key];
    if (v === 'figure' || v === 'atypical') yes += 1;
    else if (v === 'mimicker' || v === 'removed') no += 1;
    else if (v === 'unsure') unsure += 1;
  }
  const all = yes + no + unsure;
  if (!all) return 0;
  if (Math.max(yes, no, unsure) < all) return 3 + Math.min(yes + unsure, no + unsure) / all;
  if (unsure) return 2;
  return (yes > 0) === (figures.accepted[i] === 1) ? 1 : 2;
}

const COLUMNS = [
  'slide', 'figures', 'hotspot_count', 'hotspot_x_px', 'hotspot_y_px', 'hotspot_mm2', 'density_per_20_mm2', 'analysed_mm2', 'seg', 'cls',
  'run_seg', 'run_cls', 'reviewer', 'note',
];

/**
 * A line of a table of counts at these thresholds, with a note where they are not the run's. `named` is the card's name for them, if it
 * has one; `caveats` are what a reader of the slide's numbers must know; `size` is the slide's, px.
 */
export function countsLine(name, figures, point, run, reviewer, named = '', caveats = [], size = null) {
  figures.accept(point);
  const counted = figures.counted();
  const spot = hotspot(counted, figures.mpp);
  const mm2 = spot && size ? Math.round(onSlideMm2(PAPER_RULE, [[spot.x, spot.y]], figures.mpp, size) * 1e6) / 1e6 : '';
  const density = figures.analysed > 0 ? Math.round((counted.length / figures.analysed) * 20 * 1e6) / 1e6 : '';
  const moved = point.seg !== run.seg || point.cls !== run.cls;
  const notes = [];
  if (moved) notes.push(named ? `operating point ${named}, not the run's` : "not the run's operating point: its precision and recall are not known");
  if (!figures.searched) notes.push('not searched by the network');
  notes.push(...caveats);
  return [
    name, counted.length, spot ? spot.count : 0, spot ? spot.x : '', spot ? spot.y : '', mm2, density, figures.analysed, point.seg, point.cls,
    run.seg, run.cls, reviewer, notes.join('; '),
  ];
}

/** The table as CSV; a cell that a spreadsheet would compute has an apostrophe in front. */
export function countsCsv(lines) {
  const cell = (v) => {
    const text = typeof v === 'string' && /^[=+\-@\t\r]/.test(v) ? `'${v}` : String(v);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [COLUMNS, ...lines].map((line) => `${line.map(cell).join(',')}\n`).join('');
}

/** Indices of candidates in the order of the gallery. */
export function ordered(figures, order, point, voices = {}) {
  if (order === 'blind') return shuffled(figures);
  const all = [...figures.x.keys()];
  const single = (i) => Number.isNaN(figures.cls[i]);
  const score = (i) => (single(i) ? figures.seg[i] : figures.cls[i]);
  const doubt = (i) => Math.abs(score(i) - (single(i) ? point.seg : point.cls));
  if (order === 'differ') {
    const differ = Float64Array.from(all, (i) => disagreement(figures, voices, i));
    return all.sort((a, b) => differ[b] - differ[a] || doubt(a) - doubt(b));
  }
  if (order === 'doubt') return all.sort((a, b) => doubt(a) - doubt(b));
  if (order === 'open') {
    const open = (i) => (figures.verdict.has(figures.key(i)) ? 1 : 0);
    return all.sort((a, b) => open(a) - open(b) || score(b) - score(a));
  }
  return all.sort((a, b) => score(b) - score(a));
}
