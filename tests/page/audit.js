// SPDX-License-Identifier: MIT
// What the browser itself can tell of the page it shows.

function parseColour(text) {
  const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
  return {r, g, b, a};
}

function mix(over, under) {
  const part = (name) => over[name] * over.a + under[name] * (1 - over.a);
  return {r: part('r'), g: part('g'), b: part('b'), a: 1};
}

// WCAG 2.2: relative luminance, contrast ratio
function luminance({r, g, b}) {
  const [red, green, blue] = [r, g, b].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function groundOf(element) {
  const layers = [];
  for (let it = element; it !== null; it = it.parentElement) {
    layers.push(parseColour(getComputedStyle(it).backgroundColor));
  }
  const canvas = parseColour(
    matchMedia('(prefers-color-scheme: dark)').matches
      ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)');
  return layers.reduceRight((under, over) => mix(over, under), canvas);
}

function* texts() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() !== '' && element.checkVisibility() &&
        !element.closest('noscript, .hidden')) {
      yield [walker.currentNode.data.trim(), element, null];
    }
  }
  for (const element of document.querySelectorAll('td')) {
    if (element.checkVisibility() &&
        getComputedStyle(element, '::before').content !== 'none') {
      yield [element.dataset.label, element, '::before'];
    }
  }
  for (const element of document.querySelectorAll('input')) {
    yield [element.placeholder, element, '::placeholder'];
  }
}

// Each text whose contrast is below AA: 4.5, and 3 for large ones.
function findPale() {
  const pale = [];
  let count = 0;
  for (const [text, element, pseudo] of texts()) {
    const style = getComputedStyle(element, pseudo);
    const isSvg = element instanceof SVGElement;
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
    const ground = groundOf(element);
    const colour = parseColour(isSvg ? style.fill : style.color);
    const ratio = contrast(mix(colour, ground), ground);
    count++;
    if (ratio < (isLarge ? 3 : 4.5)) {
      pale.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
    }
  }
  return count === 0 ? ['there is no text'] : pale;
}

// Each element that is wider than the window, or sticks out of it.
function findWide() {
  const width = document.documentElement.clientWidth;
  const wide = [...document.body.querySelectorAll('*')]
    .filter((it) => it.checkVisibility() && !it.closest('.hidden, .skip, thead'))
    .filter((it) => it.getBoundingClientRect().right > width + 0.5)
    .map((it) => `${it.tagName} ${it.id} ${it.textContent.slice(0, 40)}`);
  if (document.documentElement.scrollWidth > width) {
    wide.push(`the page: ${document.documentElement.scrollWidth} of ${width}`);
  }
  return wide;
}
