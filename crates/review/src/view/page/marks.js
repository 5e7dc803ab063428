// One canvas over the slide: no element per figure, so that a hundred thousand draw smoothly.

import { RADIUS_UM } from './model.js';

const REGION = '#7c3aed';
/** Colours by what a mark means, from the common style; every mark has a dark and a light ring, so that it shows on pink, purple and white. */
const style = getComputedStyle(document.documentElement);
const colour = (name) => style.getPropertyValue(`--${name}`).trim();
const COLOURS = Object.fromEntries(['figure', 'atypical', 'mimicker', 'unsure', 'rejected', 'hotspot', 'tissue', 'chosen'].map((n) => [n, colour(n)]));

export class Marks {
  constructor(canvas, viewer) {
    this.canvas = canvas;
    this.viewer = viewer;
    this.pen = canvas.getContext('2d');
    this.layers = {};
    this.scene = null;
    this.waiting = false;
    for (const event of ['update-viewport', 'viewport-change', 'animation', 'animation-finish', 'resize', 'open']) viewer.addHandler(event, () => this.soon());
  }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  /** Scale and offset from level-0 px to canvas px. */
  frame() {
    const item = this.viewer.world.getItemAt(0);
    if (!item) return null;
    const at = (x, y) => this.viewer.viewport.pixelFromPoint(item.imageToViewportCoordinates(x, y), true);
    const [a, b] = [at(0, 0), at(1000, 1000)];
    return { sx: (b.x - a.x) / 1000, sy: (b.y - a.y) / 1000, x: a.x, y: a.y };
  }

  draw() {
    const { canvas, pen, scene } = this;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== w * ratio || canvas.height !== h * ratio) {
      canvas.width = w * ratio;
      canvas.height = h * ratio;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, w, h);
    const f = this.frame();
    if (!f || !scene) return;
    const px = (x) => f.x + x * f.sx;
    const py = (y) => f.y + y * f.sy;
    if (this.layers.heat) this.heat(px, py, f);
    if (this.layers.tissue) this.rings(scene.tissue, px, py);
    if (this.layers.flaws) {
      for (const { colour: [r, g, b], rings } of scene.flaws) {
        pen.beginPath();
        this.path(rings, px, py);
        pen.fillStyle = `rgba(${r}, ${g}, ${b}, 0.35)`;
        pen.fill('evenodd');
      }
    }
    if (this.layers.unread) {
      pen.fillStyle = '#6668';
      for (const [x0, y0, x1, y1] of scene.unread) pen.fillRect(px(x0), py(y0), (x1 - x0) * f.sx, (y1 - y0) * f.sy);
    }
    this.points(px, py, f, w, h);
    this.regions(px, py);
    if (this.layers.hotspot && scene.spot) this.hotspot(scene.spot, px, py, f);
  }

  /** The chosen hotspot, as far as on the slide: its square or circle, or one for each field. */
  hotspot({ rule, reach, centres, mpp, size, moving }, px, py, f) {
    const { pen } = this;
    pen.save();
    pen.beginPath();
    // With the width of the line around the edge.
    pen.rect(px(0) - 4, py(0) - 4, size[0] * f.sx + 8, size[1] * f.sy + 8);
    pen.clip();
    const [rx, ry] = [reach / mpp[0] * f.sx, reach / mpp[1] * f.sy];
    for (const [x, y] of centres) {
      const [cx, cy] = [px(x), py(y)];
      this.outline(() => {
        if (rule.shape === 'square') this.pen.rect(cx - rx, cy - ry, 2 * rx, 2 * ry);
        else this.pen.ellipse(cx, cy, rx, ry, 0, 0, 2 * Math.PI);
      }, COLOURS.hotspot, moving ? 4 : 2);
    }
    pen.restore();
  }

  /** Regions that were searched, those that were drawn, and the one that is being drawn. */
  regions(px, py) {
    const { pen, scene } = this;
    for (const r of scene.searched || []) this.outline(() => this.path(r.rings, px, py), REGION, 2);
    for (const r of scene.drawn || []) {
      this.outline(() => this.path([r.ring], px, py), REGION, 2);
      if (r.exclude) {
        pen.save();
        pen.beginPath();
        this.path([r.ring], px, py);
        pen.clip();
        pen.strokeStyle = REGION;
        pen.lineWidth = 1;
        pen.beginPath();
        const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
        for (let x = -h; x < w; x += 12) { pen.moveTo(x, 0); pen.lineTo(x + h, h); }
        pen.stroke();
        pen.restore();
      }
    }
    const open = scene.drawing;
    if (!open || !open.length) return;
    this.outline(() => {
      open.forEach(([x, y], k) => (k ? pen.lineTo(px(x), py(y)) : pen.moveTo(px(x), py(y))));
      for (const [x, y] of open) pen.rect(px(x) - 3, py(y) - 3, 6, 6);
    }, REGION, 2);
  }

  outline(path, colour, width) {
    const { pen } = this;
    for (const [style, extra] of [['#000c', 3], ['#fff', 1.5], [colour, 0]]) {
      pen.beginPath();
      path();
      pen.strokeStyle = style;
      pen.lineWidth = width + extra;
      pen.stroke();
    }
  }

  path(rings, px, py) {
    for (const ring of rings) {
      ring.forEach(([x, y], k) => (k ? this.pen.lineTo(px(x), py(y)) : this.pen.moveTo(px(x), py(y))));
      this.pen.closePath();
    }
  }

  rings(rings, px, py) {
    this.outline(() => this.path(rings, px, py), COLOURS.tissue, 1);
  }

  heat(px, py, f) {
    const most = Math.max(1, ...this.scene.density.map((d) => d.perMm2));
    for (const d of this.scene.density) {
      this.pen.fillStyle = `rgba(200, 30, 0, ${0.1 + (0.45 * d.perMm2) / most})`;
      this.pen.fillRect(px(d.x), py(d.y), d.w * f.sx, d.h * f.sy);
    }
  }

  /** What a candidate is drawn as, or null where its layer is off. */
  kind(i) {
    const { figures, blind, atypical } = this.scene;
    const word = figures.verdict.get(figures.key(i));
    if (word) {
      const counts = word === 'figure' || word === 'atypical';
      const shown = word === 'unsure' ? this.layers.accepted || this.layers.rejected : this.layers[counts ? 'accepted' : 'rejected'];
      return shown ? word : null;
    }
    if (blind) return 'unsure';
    if (!figures.accepted[i]) return this.layers.rejected ? 'rejected' : null;
    if (!this.layers.accepted) return null;
    const p = figures.atypical ? figures.atypical[i] : NaN;
    return p >= atypical ? 'atypical' : 'figure';
  }

  points(px, py, f, w, h) {
    const { figures, selected } = this.scene;
    const { pen } = this;
    const radius = Math.max(4, (RADIUS_UM / (figures.mpp ? figures.mpp[0] : 0.25)) * f.sx);
    const groups = new Map();
    const push = (kind, x, y) => {
      const [cx, cy] = [px(x), py(y)];
      if (cx < -radius || cy < -radius || cx > w + radius || cy > h + radius) return;
      if (!groups.has(kind)) groups.set(kind, []);
      groups.get(kind).push(cx, cy);
    };
    for (let i = 0; i < figures.length; i++) {
      const kind = this.kind(i);
      if (kind && kind !== 'removed') push(kind, figures.x[i], figures.y[i]);
    }
    if (this.layers.accepted) for (const a of figures.added) push(a.verdict, a.x, a.y);
    const visible = [...groups.values()].reduce((n, g) => n + g.length / 2, 0);
    for (const kind of ['rejected', 'mimicker', 'unsure', 'figure', 'atypical']) {
      const group = groups.get(kind);
      if (!group) continue;
      if (visible > 5000) {
        pen.fillStyle = COLOURS[kind];
        for (let k = 0; k < group.length; k += 2) pen.fillRect(group[k] - 1.5, group[k + 1] - 1.5, 3, 3);
        continue;
      }
      this.outline(() => {
        for (let k = 0; k < group.length; k += 2) {
          pen.moveTo(group[k] + radius, group[k + 1]);
          if (kind === 'mimicker' || kind === 'rejected') pen.rect(group[k] - radius * 0.8, group[k + 1] - radius * 0.8, radius * 1.6, radius * 1.6);
          else pen.arc(group[k], group[k + 1], radius, 0, 2 * Math.PI);
        }
      }, COLOURS[kind], kind === 'rejected' ? 1 : 2);
    }
    const chosen = selected === null ? null : figures.place(selected);
    if (chosen) {
      this.outline(() => pen.arc(px(chosen.x), py(chosen.y), radius * 1.6, 0, 2 * Math.PI), COLOURS.chosen, 2);
    }
  }
}
