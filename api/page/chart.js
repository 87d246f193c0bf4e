// SPDX-License-Identifier: MIT
// A small chart of the history: lines over the last minutes, drawn as SVG.

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 320;
const HEIGHT = 120;
const PLOT = {left: 2, right: WIDTH - 2, top: 18, bottom: HEIGHT - 18};
// two looks that are further apart than this are not joined: nobody looked
const GAP_MS = 30 * 1000;

function makeShape(name, attributes) {
  const shape = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    shape.setAttribute(key, value);
  }
  return shape;
}

// The least of 1, 2, 5, 10, 20 … times the unit that is not below the value.
function roundUp(value, least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, least)));
  const top = [1, 2, 5, 10].find((factor) => factor * power >= value * 0.999);
  return top * power;
}

function makePath(points, name, toX, toY) {
  let path = '';
  let last;
  for (const point of points) {
    const value = point[name];
    if (value !== undefined) {
      const isJoined = last !== undefined && point.at - last < GAP_MS;
      path += `${isJoined ? 'L' : 'M'}${toX(point.at).toFixed(1)} ` +
              `${toY(value).toFixed(1)}`;
      last = point.at;
    }
  }
  return path;
}

// title; lines: [{name, label, alert}], name being a member of the points,
// alert of what is bad if it is not 0; format: of a value; least: the lowest
// top of the scale.
class Chart {
  constructor({title, lines, format, least}) {
    Object.assign(this, {title, lines, format, least});
    this.element = makeElement('figure');
    const caption = makeElement('figcaption');
    caption.append(makeElement('h3', '', title));
    this.caption = caption;
    this.values = lines.map(({label}, i) => {
      const item = makeElement('span', 'legend');
      const value = makeElement('b', '', '–');
      item.append(this.makeKey(i), ` ${label} `, value);
      caption.append(item, ' ');
      return value;
    });
    this.drawing = makeShape('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
                                     role: 'img'});
    this.top = makeShape('text', {x: PLOT.left, y: 12});
    this.begin = makeShape('text', {x: PLOT.left, y: HEIGHT - 4});
    this.end = makeShape('text', {x: PLOT.right, y: HEIGHT - 4,
                                   'text-anchor': 'end'});
    this.paths = lines.map((_, i) => makeShape('path', {class: `line${i}`}));
    this.drawing.append(
      this.makeRule(PLOT.top), this.makeRule(PLOT.bottom), this.top,
      this.begin, this.end, ...this.paths);
    this.element.append(caption, this.drawing);
  }

  makeRule(y) {
    return makeShape('path', {class: 'rule',
                              d: `M${PLOT.left} ${y}H${PLOT.right}`});
  }

  makeKey(i) {
    const key = makeShape('svg', {viewBox: '0 0 18 8', class: 'key',
                                  'aria-hidden': 'true'});
    key.append(makeShape('path', {class: `line${i}`, d: 'M0 4H18'}));
    return key;
  }

  // Begins with what is known, and the scale grows with what there is to see.
  draw(all, now) {
    const begin = all.findIndex((point) =>
      this.lines.some(({name}) => point[name] !== undefined));
    // one alone makes no line
    const points = begin === -1 || begin === all.length - 1 ? []
      : all.slice(begin);
    const last = all.length > 0 && now - all[all.length - 1].at < FRESH_MS
      ? all[all.length - 1] : {};
    const age = points.length > 0 ? Math.max(now - points[0].at, 1) : 1;
    const values = points.flatMap((point) =>
      this.lines.map(({name}) => point[name] || 0));
    const top = roundUp(Math.max(...values, 0), this.least);
    const toX = (at) =>
      PLOT.right - (now - at) / age * (PLOT.right - PLOT.left);
    const toY = (value) =>
      PLOT.bottom - value / top * (PLOT.bottom - PLOT.top);
    setText(this.top, points.length > 0 ? this.format(top) : '');
    setText(this.begin, points.length > 0 ? `${formatDuration(age)} ago`
      : 'nothing to draw yet');
    setText(this.end, points.length > 0 ? 'now' : '');
    const told = this.lines.map(({name, label}, i) => {
      this.paths[i].setAttribute('d', makePath(points, name, toX, toY));
      const text = last[name] === undefined ? '–' : this.format(last[name]);
      setText(this.values[i], text);
      return `${label} ${text}`;
    });
    const bad = this.lines.find(({name, alert}) => alert && last[name] > 0);
    setRunbook(this.caption, bad === undefined ? '' : bad.alert);
    this.drawing.setAttribute('aria-label', `${this.title}: ${told.join(', ')}`);
  }
}
