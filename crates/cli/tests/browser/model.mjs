// What the page computes beside the hotspot: who differs, and the table of counts.
//
// usage: node model.mjs MODEL.js

import assert from 'node:assert/strict';

const { Figures, PAPER_RULE, countsCsv, countsLine, disagreement, onSlideMm2, ordered } = await import(process.argv[2]);

const detail = {
  searched: true, mpp: [0.25, 0.25], analysed_mm2: 4,
  columns: { x: [10, 20, 30, 40], y: [1, 2, 3, 4], s_seg: [0.9, 0.9, 0.9, 0.9], s_cls: [0.9, 0.8, 0.3, 0.75], outside: [false, false, false, false] },
};
const run = { seg: 0.5, cls: 0.7 };
const figures = new Figures(detail);
figures.accept(run);
const key = (i) => figures.key(i);
const voices = {
  anna: { [key(0)]: 'figure', [key(1)]: 'mimicker', [key(2)]: 'figure' },
  bert: { [key(0)]: 'atypical', [key(1)]: 'removed', [key(2)]: 'mimicker' },
};
// Agreed with the network, agreed against it, divided, not judged.
assert.deepEqual([0, 1, 2, 3].map((i) => Math.floor(disagreement(figures, voices, i))), [1, 2, 3, 0]);
assert.deepEqual(ordered(figures, 'differ', run, voices), [2, 1, 0, 3]);
const many = { a: { [key(0)]: 'figure' }, b: { [key(0)]: 'figure' }, c: { [key(0)]: 'figure' }, d: { [key(0)]: 'mimicker' } };
assert.ok(disagreement(figures, many, 0) < disagreement(figures, voices, 2), 'three to one differ less than one to one');

const counts = (point) => countsLine('a,"b"', figures, point, run, 'anna');
assert.deepEqual(counts(run).slice(1, 3), [3, 3]);
assert.equal(counts(run).at(-1), '', 'the run\'s own point needs no words');
const moved = counts({ seg: 0.5, cls: 0.1 });
assert.deepEqual([moved[1], moved[6], ...moved.slice(8, 13)], [4, 20, 0.5, 0.1, 0.5, 0.7, 'anna']);
assert.match(moved.at(-1), /not the run's operating point/);
// The square of 2 mm2 has its centre 2.5 um from the corner: half a side and so much are on the slide, each way.
const [, , , x, y, mm2] = countsLine('a', figures, run, run, 'anna', '', [], [40000, 40000]);
const side = [x, y].map((v) => Math.SQRT1_2 + v * 0.25 / 1000);
assert.ok(Math.abs(mm2 - side[0] * side[1]) < 1e-6, `${mm2}`);
// Of a hotspot in a run with regions only what is in one of them was searched; regions that overlap count once.
const box = ([x0, y0, x1, y1]) => ({ rings: [[[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]] });
const regions = [[0, 0, 24000, 40000], [20000, 0, 40000, 40000], [60000, 0, 80000, 40000]].map(box);
const circle = { shape: 'circle', fields: 10, field_mm2: 0.237, apart: false };
const apart = { shape: 'square', fields: 4, field_mm2: 1, apart: true };
for (const [rule, centres, expected] of [
  [circle, [[22000, 20000]], 2.37], [circle, [[40000, 20000]], 1.185], [circle, [[0, 20000]], 1.185], [circle, [[50000, 20000]], 0],
  [PAPER_RULE, [[40000, 20000]], 1], [PAPER_RULE, [[40000, 0]], 0.5],
  [apart, [[12000, 10000], [14000, 10000], [40000, 18000], [48000, 24000]], 2],
]) {
  const part = onSlideMm2(rule, centres, [0.25, 0.5], [80000, 40000], regions);
  assert.ok(Math.abs(part - expected) < 1e-4, `${part}, not ${expected}`);
}
figures.verdict.set(key(0), 'mimicker');
const add = (x, verdict = 'figure') => figures.add({ key: `+${x}.00,5.00`, x, y: 5, verdict });
add(500);
add(600);
assert.equal(counts(run)[1], 4, 'one out, two added');
assert.deepEqual(figures.place(5), { key: '+600.00,5.00', x: 600, y: 5, added: true });
add(601);
assert.equal(counts(run)[1], 4, 'within 7.5 um of another one');
add(601, null);
assert.equal(figures.place(6), null);
const [head, line] = countsCsv([['=cmd', 1, moved[0]]]).split('\n');
assert.ok(head.startsWith('slide,figures,') && head.includes('run_cls'));
assert.equal(line, '\'=cmd,1,"a,""b"""');
