// SPDX-License-Identifier: MIT
// Texts and elements. What comes from elsewhere reaches the page only as
// text: names of resources and owners are what some client sent.

const byId = (id) => document.getElementById(id);

// Leaves the element alone if nothing changes, so that a selection stays.
function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

function makeElement(name, className, text) {
  const element = document.createElement(name);
  if (className) {
    element.className = className;
  }
  if (text !== undefined) {
    element.textContent = text;
  }
  return element;
}

// What the page counts by. It goes on while the machine sleeps, as locks do.
const readClock = () => Date.now();

// Beside what is bad: the section of the runbook, which is on this page, that
// has this title; '': nothing is bad.
function setRunbook(holder, title) {
  let link = holder.querySelector('.to-runbook');
  if (title === '') {
    link?.remove();
    return;
  }
  if (link === null) {
    link = makeElement('a', 'to-runbook', 'Runbook');
    holder.append(link);
  }
  const target = `#runbook-${title.toLowerCase().replaceAll(' ', '-')}`;
  if (link.getAttribute('href') !== target) {
    link.setAttribute('href', target);
    link.setAttribute('aria-label', `Runbook: ${title}`);
  }
}

// Shows the texts, and the runbook beside those with an alert.
function showNotes(list, notes) {
  while (list.childElementCount > notes.length) {
    list.lastElementChild.remove();
  }
  notes.forEach(({text, alert}, i) => {
    const item = list.children[i] || list.appendChild(makeElement('li'));
    if (item.firstChild === null) {
      item.append(document.createElement('bdi'));
    }
    setText(item.firstChild, text);
    setRunbook(item, alert);
  });
}

// The resource of a lock; of a permit with the numbers of its slots.
const describeResource = ({resource, slots}) =>
  slots === undefined ? resource
    : `${resource}, ${slots.length > 1 ? 'slots' : 'slot'} ${slots.join(', ')}`;

// A cell that tells its column where the table is shown as cards. The text is
// isolated: a name that is written from right to left turns nothing else.
function makeCell(label, className) {
  const cell = makeElement('td', className);
  cell.setAttribute('role', 'cell');
  cell.dataset.label = label;
  cell.append(document.createElement('bdi'));
  return cell;
}

function setCell(cell, text) {
  setText(cell.firstChild, text);
  cell.classList.toggle('empty', text === '');
}

// Makes the rows those of the keys, in their order; keeps rows that stay, and
// the focus in one that moves.
function keepRows(body, rows, keys, makeRow) {
  const focused = document.activeElement;
  const wanted = new Set(keys);
  for (const [key, row] of rows) {
    if (!wanted.has(key)) {
      row.element.remove();
      rows.delete(key);
    }
  }
  let next = body.firstElementChild;
  for (const key of keys) {
    if (!rows.has(key)) {
      rows.set(key, makeRow(key));
    }
    const {element} = rows.get(key);
    if (element === next) {
      next = next.nextElementSibling;
    } else {
      body.insertBefore(element, next);
    }
  }
  if (focused !== document.activeElement && body.contains(focused)) {
    focused.focus({preventScroll: true});
  }
}

function makeRow(columns) {
  const element = document.createElement('tr');
  element.setAttribute('role', 'row');
  const cells = columns.map(([label, className]) => {
    const cell = makeCell(label, className);
    element.append(cell);
    return cell;
  });
  return {element, cells};
}

// ---- numbers ---------------------------------------------------------------

const formatCount = new Intl.NumberFormat('en').format;

// 950 ms, 12 s, 3 min 5 s, 2 h 4 min, 3 d 2 h
function formatDuration(ms) {
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (hours >= 24) {
    return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  }
  if (hours > 0) {
    return `${hours} h ${minutes % 60} min`;
  }
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

// By the visitor's clock.
const formatTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit',
  second: '2-digit',
}).format;

// What is left is rounded up: 0 s is reached at the end, not before it.
const formatLeft = (ms) => formatDuration(Math.ceil(ms / 1000) * 1000);

function formatLatency(seconds) {
  const ms = seconds * 1000;
  if (ms >= 1000) {
    return `${seconds.toPrecision(2)} s`;
  }
  return `${ms >= 100 ? ms.toFixed(0) : ms.toPrecision(2)} ms`;
}

const formatRate = (rate) =>
  rate === 0 || rate >= 100 ? formatCount(Math.round(rate))
    : rate >= 10 ? rate.toFixed(0)
      : rate.toFixed(1);

// What is older than this was not just asked for.
const FRESH_MS = 10 * 1000;

// '' if it is as new as what the page asks for again and again.
function formatAge(at, now) {
  const age = now - at;
  return age < FRESH_MS ? '' : `as of ${formatDuration(age)} ago`;
}

const plural = (count, one, many) =>
  `${formatCount(count)} ${count === 1 ? one : many}`;
