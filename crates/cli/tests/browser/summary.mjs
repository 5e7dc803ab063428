// Sorts the table of a summary of many slides, and opens rows, in headless Chromium.
//
// usage: node --experimental-websocket summary.mjs FILE CHROMIUM [SCREENSHOT.png]

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { judged, walked } from './axe.mjs';
import { start } from './chromium.mjs';

const [file, chromium, picture] = process.argv.slice(2);
const { page, end, troubles } = await start(chromium);
const column = (k) => `[...document.querySelectorAll('#slides tbody tr:not(.shown)')].map((r) => r.cells[${k}].textContent)`;
const press = (k) => `document.querySelectorAll('#slides th button')[${k}].click()`;
const sorted = (k) => `document.querySelectorAll('#slides th')[${k}].getAttribute('aria-sort')`;

try {
  const a = await page();
  await a.call('Page.navigate', { url: pathToFileURL(file).href });
  await a.until("document.readyState === 'complete' && document.getElementById('slides') !== null", 'the table');
  await judged(a, 'the summary of many slides');
  await walked(a, 'the summary of many slides');
  const names = await a.run(column(0));
  assert.ok(names.length > 12, 'a table of many slides');
  const figures = (await a.run(column(1))).map(Number);

  // Numbers: the largest first, then the smallest; names beside them move along.
  await a.run(press(1));
  assert.deepEqual((await a.run(column(1))).map(Number), [...figures].sort((x, y) => y - x));
  assert.equal(await a.run(sorted(1)), 'descending');
  const of = new Map(names.map((n, i) => [n, figures[i]]));
  const moved = await a.run(column(0));
  assert.deepEqual((await a.run(column(1))).map(Number), moved.map((n) => of.get(n)));
  await a.run(press(1));
  assert.deepEqual((await a.run(column(1))).map(Number), [...figures].sort((x, y) => x - y));
  assert.equal(await a.run(sorted(1)), 'ascending');
  await a.run(press(0));
  assert.deepEqual(await a.run(column(0)), [...names].sort((x, y) => x.localeCompare(y)));
  assert.equal(await a.run(sorted(1)), null);

  // A row opens its slide's pictures from the folder, and closes again.
  const open = "document.querySelector('#slides .open')";
  assert.equal(await a.run("document.querySelectorAll('#slides img').length"), 0);
  await a.run(`${open}.click()`);
  await a.until("document.querySelector('.shown img')?.naturalWidth > 0", 'a thumbnail');
  assert.equal(await a.run(`${open}.getAttribute('aria-expanded')`), 'true');
  if (picture) writeFileSync(picture, Buffer.from(await a.screenshot(), 'base64'));
  await a.run(`${open}.click()`);
  assert.equal(await a.run("document.querySelectorAll('.shown').length"), 0);
  // Sorting closes what is open, which belongs to a row.
  await a.run(`${open}.click()`);
  await a.run(press(2));
  assert.equal(await a.run("document.querySelectorAll('.shown').length"), 0);
  // On paper there is nothing to press: no hints to click, no arrows at the columns, names as plain text.
  const shown = (what) => `getComputedStyle(document.querySelector('${what}')).display`;
  const arrow = "getComputedStyle(document.querySelector('#slides th button'), '::after').content";
  const line = `getComputedStyle(${open}).textDecorationLine`;
  assert.deepEqual([await a.run(shown('.screen')) !== 'none', await a.run(line)], [true, 'underline']);
  await a.call('Emulation.setEmulatedMedia', { media: 'print' });
  assert.deepEqual([await a.run(shown('.screen')), await a.run(arrow), await a.run(line)], ['none', '""', 'none']);
  const sheets = Buffer.from((await a.call('Page.printToPDF', { paperWidth: 8.27, paperHeight: 11.69 })).data, 'base64');
  assert.equal(sheets.subarray(0, 5).toString(), '%PDF-');
  assert.ok(sheets.toString('latin1').match(/\/Type\s*\/Page\b/g).length <= 3, 'a table of fifteen slides fills few sheets');
  await a.call('Emulation.setEmulatedMedia', { media: '' });
  assert.deepEqual(troubles.filter((t) => !/ERR_FILE_NOT_FOUND/.test(t)), []);
} finally {
  await end();
}
process.exit(0);
