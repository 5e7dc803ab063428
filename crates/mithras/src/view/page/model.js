// What the page computes: which candidates are figures at the chosen thresholds, where the hotspot lies, how dense.

/** Side of the hotspot, um: a square of 2 mm2. */
export const HOTSPOT_UM = Math.sqrt(2e6);

/** Candidates of a slide as columns, with the reviewers' corrections on top. */
export class Figures {
  constructor(detail) {
    const c = detail.columns;
    this.x = Float64Array.from(c.x);
    this.y = Float64Array.from(c.y);
    this.seg = Float32Array.from(c.s_seg);
    this.cls = Float32Array.from(c.s_cls, (v) => (v === null ? NaN : v));
    this.outside = Uint8Array.from(c.outside);
    this.atypical = c.p_atypical ? Float32Array.from(c.p_atypical, (v) => (v === null ? NaN : v)) : null;
    this.morphology = c.morphology || null;
    this.mpp = detail.mpp;
    this.analysed = detail.analysed_mm2;
    this.added = [];
    this.verdict = new Map();
    this.accepted = new Uint8Array(this.x.length);
  }

  get length() {
    return this.x.length;
  }

  /** The key that a reviewer's verdict names a candidate by. */
  key(i) {
    return `${this.x[i].toFixed(2)},${this.y[i].toFixed(2)}`;
  }

  /** Accepted as the program accepts: both scores reach their thresholds, on tissue. */
  accept({ seg, cls }) {
    for (let i = 0; i < this.x.length; i++) {
      const second = Number.isNaN(this.cls[i]) ? false : this.cls[i] >= cls;
      this.accepted[i] = this.seg[i] >= seg && second && !this.outside[i] ? 1 : 0;
    }
  }

  /** What counts: the reviewer's word where there is one, else the network's. */
  counts(i) {
    const word = this.verdict.get(this.key(i));
    if (word === 'figure' || word === 'atypical') return true;
    if (word === 'mimicker' || word === 'removed') return false;
    return this.accepted[i] === 1;
  }

  /** Places of all that counts: [x, y] in level-0 px. */
  counted() {
    const out = [];
    for (let i = 0; i < this.x.length; i++) if (this.counts(i)) out.push([this.x[i], this.y[i]]);
    for (const a of this.added) out.push([a.x, a.y]);
    return out;
  }
}

/**
 * The 2 mm2 square centred on a figure that holds most figures; null without figures or um/px.
 * A grid of half sides: only neighbouring cells can hold members.
 */
export function hotspot(points, mpp) {
  if (!points.length || !mpp) return null;
  const [hx, hy] = [HOTSPOT_UM / 2 / mpp[0], HOTSPOT_UM / 2 / mpp[1]];
  const cells = new Map();
  const cell = (x, y) => `${x}:${y}`;
  for (const p of points) {
    const k = cell(Math.floor(p[0] / hx), Math.floor(p[1] / hy));
    if (!cells.has(k)) cells.set(k, []);
    cells.get(k).push(p);
  }
  let best = null;
  for (const p of points) {
    const [cx, cy] = [Math.floor(p[0] / hx), Math.floor(p[1] / hy)];
    let n = 0;
    for (let dx = -1; dx <= 1; dx++) {
      for (let dy = -1; dy <= 1; dy++) {
        for (const q of cells.get(cell(cx + dx, cy + dy)) || []) {
          if (Math.abs(q[0] - p[0]) <= hx && Math.abs(q[1] - p[1]) <= hy) n++;
        }
      }
    }
    // Of equal squares the topmost, then the leftmost, as the program has it.
    const better = !best || n > best.count || (n === best.count && (p[1] < best.y || (p[1] === best.y && p[0] < best.x)));
    if (better) best = { count: n, x: p[0], y: p[1], min: [p[0] - hx, p[1] - hy], max: [p[0] + hx, p[1] + hy] };
  }
  return best;
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

/** Indices of candidates in the order of the gallery. */
export function ordered(figures, order, point) {
  const all = [...figures.x.keys()];
  const score = (i) => (Number.isNaN(figures.cls[i]) ? -1 : figures.cls[i]);
  const doubt = (i) => Math.abs(score(i) - point.cls);
  if (order === 'doubt') return all.filter((i) => score(i) >= 0).sort((a, b) => doubt(a) - doubt(b));
  if (order === 'open') {
    const open = (i) => (figures.verdict.has(figures.key(i)) ? 1 : 0);
    return all.sort((a, b) => open(a) - open(b) || score(b) - score(a));
  }
  return all.sort((a, b) => score(b) - score(a));
}
