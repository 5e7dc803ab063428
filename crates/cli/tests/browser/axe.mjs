// Judges a page by the WCAG 2.2, levels A and AA, with axe-core, and by walking through it with the Tab key.
//
// AXE names axe.min.js (scripts/setup.sh fetches it); without it `judged` reports that it was skipped.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';

const file = process.env.AXE;
const source = file && existsSync(file) ? readFileSync(file, 'utf8') : null;
if (!source) console.error('SKIPPED: contrast and names of the pages were not judged; axe-core is missing (scripts/setup.sh installs it)');

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22a', 'wcag22aa', 'best-practice'];

/** Asserts that axe-core finds nothing wrong, in light and in dark colours. `what` names the state of the page. */
export async function judged(page, what, schemes = ['light', 'dark']) {
  if (!source) return;
  if (!(await page.run('typeof window.axe === "object"'))) await page.run(`${source}; undefined`);
  for (const scheme of schemes) {
    await page.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    const found = await page.run(`(async () => {
      const answer = await axe.run(document, { runOnly: ${JSON.stringify(RULES)}, resultTypes: ['violations'] });
      return answer.violations.map((v) => ({
        rule: v.id, help: v.help,
        at: v.nodes.slice(0, 5).map((n) => n.target.join(' ') + ' -- ' + (n.any.concat(n.all, n.none).map((c) => c.message).join('; ')) + ' -- ' + n.html.slice(0, 200)),
      }));
    })()`);
    assert.ok(!found.length, `${what}, ${scheme}: ${JSON.stringify(found, null, 1)}`);
  }
  await page.call('Emulation.setEmulatedMedia', { features: [] });
}

/** What the pointer can use: seen, enabled, and not taken out of the order on purpose by a group of its own. */
const USABLE = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')].filter((e) => {
  if (e.disabled || e.closest('[inert]') || e.tabIndex < 0) return false;
  const s = getComputedStyle(e);
  return e.getClientRects().length > 0 && s.visibility !== 'hidden' && s.display !== 'none';
})`;

/**
 * Presses Tab until the focus comes round: everything that can be used is reached, each step is seen (an outline or a change of its box),
 * and nothing holds the focus. Gives the names in order.
 */
export async function walked(page, what, most = 400) {
  await page.run(`(() => {
    document.activeElement?.blur();
    window.walk = ${USABLE};
    // Names of one radio group are one stop.
    window.walk = window.walk.filter((e) => e.type !== 'radio' || e.checked || !document.querySelector('input[type=radio][name="' + e.name + '"]:checked'));
    window.met = new Set();
    // From the top of the page, wherever the pointer was last.
    const first = document.createElement('span');
    first.tabIndex = -1;
    document.body.prepend(first);
    first.focus();
    first.remove();
  })()`);
  const names = [];
  let still = 0;
  for (let i = 0; i < most; i += 1) {
    await page.key('Tab');
    const at = await page.run(`(() => {
      const e = document.activeElement;
      if (!e || e === document.body) return { end: true };
      const again = window.met.has(e);
      window.met.add(e);
      const s = getComputedStyle(e);
      const seen = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== 'none';
      const r = e.getBoundingClientRect();
      return { end: false, again, seen, inView: r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth,
        name: e.id || e.getAttribute('aria-label') || e.textContent.trim().slice(0, 40) || e.tagName };
    })()`);
    if (at.end || at.again) {
      still += 1;
      if (still > 2 || at.end) break;
      continue;
    }
    still = 0;
    assert.ok(at.seen, `${what}: the focus on ${at.name} is not seen`);
    assert.ok(at.inView, `${what}: the focus on ${at.name} is outside the window`);
    names.push(at.name);
  }
  const missed = await page.run("window.walk.filter((e) => !window.met.has(e) && e.isConnected).map((e) => e.outerHTML.slice(0, 200))");
  assert.deepEqual(missed, [], `${what}: not reached by Tab`);
  return names;
}
