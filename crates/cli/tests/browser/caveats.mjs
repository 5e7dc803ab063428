// Looks for what a reader of a slide's numbers must know, where the numbers are seen: the viewer's banner, list and
// header, the summary of the run, and the report.
//
// usage: node --experimental-websocket caveats.mjs URL CHROMIUM CAVEATS SUMMARY REPORT [SCREENSHOT.png]
//
// CAVEATS: the label of each as the list has it, and words of its sentence.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { judged } from './axe.mjs';
import { start } from './chromium.mjs';

const [url, chromium, list, summary, report, picture] = process.argv.slice(2);
const caveats = JSON.parse(list);
const { page, end, troubles } = await start(chromium);

/** The text of the first element whose text has these words and whose middle is seen, nothing over it. */
const seen = (p, where, words) => p.run(`(() => {
  const has = [...document.querySelectorAll(${JSON.stringify(where)})].filter((e) => e.textContent.includes(${JSON.stringify(words)}));
  for (const e of has) {
    e.scrollIntoView({ block: 'center' });
    const r = e.getBoundingClientRect();
    const on = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
    if (r.width && r.height && on && (e.contains(on) || on.contains(e))) return e.textContent;
  }
  return null;
})()`);

try {
  const p = await page();
  const shot = async (name) => {
    if (picture) writeFileSync(picture.replace(/(\.png)?$/, `-${name}.png`), Buffer.from(await p.screenshot(), 'base64'));
  };
  await p.call('Page.navigate', { url });
  await p.until("document.getElementById('numbers').textContent !== ''", 'the slide');
  const places = { banner: '#caveats p', header: '#numbers', list: '#slides .warn' };
  for (const [label, words] of caveats) {
    assert.ok(await seen(p, places.banner, `${label}: `), `no ${label} in the banner`);
    assert.ok((await seen(p, places.banner, words)).startsWith(label), `${label}: not ${words}`);
    for (const where of ['header', 'list']) assert.ok(await seen(p, places[where], label), `no ${label} in the ${where}`);
  }
  assert.match(await p.run("document.getElementById('numbers').textContent"), /^not valid: /);
  // The banner hides neither the slide nor its overview.
  const above = await p.run("document.getElementById('stage').getBoundingClientRect().top - document.getElementById('caveats').getBoundingClientRect().bottom");
  assert.ok(above >= -0.5, `the banner covers ${-above} px of the slide`);
  const share = await p.run("document.getElementById('caveats').getBoundingClientRect().height / document.getElementById('middle').getBoundingClientRect().height");
  assert.ok(share < 0.3, `the banner takes ${share} of the height`);
  await judged(p, 'the viewer with caveats');
  await shot('viewer');
  // Blinded, what is about the slide stays.
  await p.key('b');
  await p.until("document.body.classList.contains('blind')", 'blinded');
  for (const [label] of caveats) assert.ok(await seen(p, places.banner, `${label}: `), `blinded, no ${label} in the banner`);

  for (const [name, file] of [['summary', summary], ['report', report]]) {
    await p.call('Page.navigate', { url: pathToFileURL(file).href });
    await p.until("document.readyState === 'complete'", name);
    for (const [, words] of caveats) assert.ok(await seen(p, 'p, li, td, dd', words), `the ${name} does not show: ${words}`);
    await judged(p, `the ${name} with caveats`);
    await p.run('scrollTo(0, 0)');
    await shot(name);
  }
  assert.deepEqual(troubles, []);
} finally {
  await end();
}
process.exit(0);
