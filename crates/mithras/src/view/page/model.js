// What the page computes: which candidates are figures at the chosen thresholds, where the hotspot lies, how dense.

/** Half the side of the hotspot, um: of a square of 2 mm2. */
export const HALF_UM = Math.SQRT2 / 2 * 1000;

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
    this.searched = detail.searched;
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

/**
 * The 2 mm2 square centred on a figure that holds most figures; null without figures or um/px.
 * As the program counts (`mitosis::crowd`): one sweep over rows with sums over columns, however crowded
 * they are, and the border decided by one plain comparison per axis in um.
 */
export function hotspot(points, mpp) {
  const n = points.length;
  if (!n || !mpp) return null;
  const half = HALF_UM;
  const um = points.map(([x, y]) => [x * mpp[0], y * mpp[1]]);
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
  let best = 0;
  for (let i = 1; i < n; i++) {
    // Of equal squares the topmost, then the leftmost, as the program has it.
    const [p, q] = [points[i], points[best]];
    if (counts[i] > counts[best] || (counts[i] === counts[best] && (p[1] < q[1] || (p[1] === q[1] && p[0] < q[0])))) best = i;
  }
  const [x, y] = points[best];
  const corner = (sign) => [(um[best][0] + sign * half) / mpp[0], (um[best][1] + sign * half) / mpp[1]];
  return { count: counts[best], x, y, min: corner(-1), max: corner(1) };
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
  const single = (i) => Number.isNaN(figures.cls[i]);
  const score = (i) => (single(i) ? figures.seg[i] : figures.cls[i]);
  const doubt = (i) => Math.abs(score(i) - (single(i) ? point.seg : point.cls));
  if (order === 'doubt') return all.sort((a, b) => doubt(a) - doubt(b));
  if (order === 'open') {
    const open = (i) => (figures.verdict.has(figures.key(i)) ? 1 : 0);
    return all.sort((a, b) => open(a) - open(b) || score(b) - score(a));
  }
  return all.sort((a, b) => score(b) - score(a));
}
