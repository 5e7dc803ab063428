// Looks at pages that are read and printed, not used: judges them, and prints each on A4.
//
// usage: node --experimental-websocket report.mjs FILE CHROMIUM PAGES [SCREENSHOT.png]
//
// PAGES is how many sheets the print may have; 0 for as many as fill.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { judged, walked } from './axe.mjs';
import { start } from './chromium.mjs';

const [file, chromium, pages, picture] = process.argv.slice(2);
const { page, end, troubles } = await start(chromium);

try {
  const a = await page();
  await a.call('Page.navigate', { url: pathToFileURL(file).href });
  await a.until("document.readyState === 'complete' && [...document.images].every((i) => i.complete && i.naturalWidth > 0)", 'the page with its pictures');
  assert.equal(await a.run("[...document.images].filter((i) => !i.alt).length"), 0, 'every picture has a text');
  // What is seen where a picture is, is the picture: nothing that is drawn over it hides it.
  for (let k = 0; k < await a.run('document.images.length'); k += 1) {
    const clip = await a.run(`(() => { const i = document.images[${k}]; i.scrollIntoView({ block: 'center' }); const r = i.getBoundingClientRect(); return { x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height }; })()`);
    const seen = await a.screenshot(clip);
    const apart = await a.run(`(async () => {
      const grey = (picture) => {
        const pen = new OffscreenCanvas(64, 64).getContext('2d');
        pen.drawImage(picture, 0, 0, 64, 64);
        return pen.getImageData(0, 0, 64, 64).data;
      };
      const shot = new Image();
      shot.src = 'data:image/png;base64,${seen}';
      await shot.decode();
      const [p, q] = [grey(document.images[${k}]), grey(shot)];
      return p.reduce((sum, v, i) => sum + Math.abs(v - q[i]), 0) / p.length;
    })()`);
    assert.ok(apart < 15, `picture ${k} is hidden: it differs from what is seen by ${apart} of 255`);
  }
  await judged(a, file);
  await walked(a, file);
  if (picture) writeFileSync(picture, Buffer.from(await a.screenshot(), 'base64'));

  // As a browser prints it by default on A4, margins by the page's own style.
  const { data } = await a.call('Page.printToPDF', { paperWidth: 8.27, paperHeight: 11.69, preferCSSPageSize: true, printBackground: false });
  const pdf = Buffer.from(data, 'base64');
  if (picture) writeFileSync(picture.replace(/\.png$/, '.pdf'), pdf);
  const text = pdf.toString('latin1');
  const sheets = (text.match(/\/Type\s*\/Page\b(?!s)/g) ?? []).length;
  const [, width, height] = text.match(/\/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]/);
  assert.ok(Math.abs(width - 595) < 2 && Math.abs(height - 842) < 2, `A4, not ${width} x ${height}`);
  if (Number(pages)) assert.equal(sheets, Number(pages), `${sheets} sheets of A4`);
  else {
    // No sheet is left half empty: on average at least three quarters are filled, between margins of 14 mm (tables and
    // pictures are not torn, and how high they are hangs on the fonts of the machine).
    const [width, height] = [182, 269].map((mm) => Math.round((mm / 25.4) * 96));
    await a.call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
    await a.call('Emulation.setEmulatedMedia', { media: 'print' });
    const needed = Math.ceil(await a.run('document.documentElement.getBoundingClientRect().height') / (0.75 * height));
    assert.ok(sheets <= needed, `${sheets} sheets of A4, of which ${needed} would do`);
  }
  assert.deepEqual(troubles, []);
} finally {
  await end();
}
process.exit(0);
