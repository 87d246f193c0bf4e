// SPDX-License-Identifier: MIT
// The list of locks.

const LOCK_COLUMNS = [
  ['Resource', 'name resource wide'], ['Owner', ''], ['Fencing token', 'number'],
  ['Expires in', 'number'], ['Waiters', 'number'], ['Held on', 'number'],
];
const PAGE = 100;
// an answer may be short, or empty, and yet there is more: the server looks
// only so far in one call
const CALLS_MAX = 20;
// once what is wanted is there, and only a lock with waiters is looked for
const SEARCH_PAGE = 1000;
const SEARCH_CALLS_MAX = 60;

// Clients that wait for these locks. Those of a pool wait for any of its slots.
function countWaiters(locks) {
  const counts = new Map(locks.map(({resource, waiters}) =>
    [resource, waiters]));
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

const slotOf = ({slots}) => slots === undefined ? -1 : slots[0];

// What somebody waits for comes first.
function compareLocks(a, b) {
  if (a.waiters !== b.waiters) {
    return b.waiters - a.waiters;
  }
  return a.resource === b.resource ? slotOf(a) - slotOf(b)
    : a.resource < b.resource ? -1 : 1;
}

// The count ends with the answer that decides; later ones may be as good.
function formatHeld({held, total}) {
  return `${held < total ? 'at least ' : ''}${held} of ${total}`;
}

class Locks {
  // Calls choose(lock) when somebody wants to see, or to see no more, of it.
  constructor(choose) {
    this.choose = choose;
    this.rows = new Map();
    this.locks = [];
    this.wanted = PAGE;
    this.waiters = 0; // as the metrics tell: how many wait for a lock here
  }

  // Asks until there is what is wanted, and what clients wait for. Returns what
  // to show.
  async read(ask) {
    const prefix = byId('prefix').value;
    const wanted = this.wanted;
    const found = new Map();
    let cursor;
    let calls = 0;
    const needsMore = () => found.size < wanted
      ? calls < CALLS_MAX
      : calls < SEARCH_CALLS_MAX && byId('prefix').value === prefix &&
        countWaiters([...found.values()]) < this.waiters;
    do {
      const query = new URLSearchParams({
        prefix, page_size: found.size < wanted ? PAGE : SEARCH_PAGE,
      });
      if (cursor !== undefined) {
        query.set('cursor', cursor);
      }
      const answer = await ask(`/locks?${query}`);
      for (const lock of answer.locks) {
        found.set(lock.id, lock);
      }
      cursor = answer.next_cursor;
      calls++;
    } while (cursor !== undefined && needsMore());
    const locks = [...found.values()].sort(compareLocks);
    return {prefix, locks: locks.slice(0, wanted), count: locks.length,
            isWhole: cursor === undefined};
  }

  show({prefix, locks, count, isWhole}, now) {
    for (const lock of locks) {
      if (lock.remaining_ms !== undefined) {
        lock.endsAt = now + lock.remaining_ms;
      }
    }
    this.locks = locks;
    this.shownAt = now;
    keepRows(byId('lock-rows'), this.rows, locks.map(({id}) => id),
             (id) => this.makeRow(id));
    byId('locks-table').hidden = locks.length === 0;
    byId('more').hidden = isWhole && count === locks.length;
    const what = prefix === '' ? '' : ' with this prefix';
    const rest = !isWhole ? ', and perhaps more'
      : count > locks.length
        ? `; ${formatCount(locks.length)} of them are shown` : '';
    this.note = count === 0 && isWhole ? `No locks${what} are held`
      : `${plural(count, 'lock', 'locks')}${what}${rest}`;
    this.tick(now);
    setText(byId('locks-note'), `${this.note}.`);
  }

  // The resource is a button that opens the details.
  makeRow(id) {
    const row = makeRow(LOCK_COLUMNS);
    const opener = makeElement('button', 'opener');
    opener.type = 'button';
    opener.setAttribute('aria-controls', 'details');
    opener.addEventListener('click', () => {
      this.choose(this.locks.find((lock) => lock.id === id));
    });
    row.cells[0].firstChild.append(opener);
    return {...row, opener};
  }

  // The list stays. Why it is old is told, unless the headline has it.
  fail({message, status}) {
    const reason = status === undefined ? '' : `${message} `;
    setText(byId('locks-note'), this.shownAt === undefined
      ? reason || 'No list yet.'
      : `${reason}${this.note}, as of ` +
        `${formatTime(new Date(this.shownAt))}.`);
  }

  tick(now) {
    for (const lock of this.locks) {
      this.showLock(lock, now);
    }
  }

  showLock(lock, now) {
    const left = lock.endsAt === undefined ? undefined : lock.endsAt - now;
    const owner = lock.owner === undefined ? '' : lock.owner;
    const texts = [
      lock.readers ? plural(lock.readers, 'reader', 'readers') : owner,
      lock.fencing_token === undefined ? '' : String(lock.fencing_token),
      left === undefined ? '' : left > 0 ? formatLeft(left) : 'expired',
      formatCount(lock.waiters),
      formatHeld(lock.nodes),
    ];
    const {element, cells, opener} = this.rows.get(lock.id);
    setText(opener, describeResource(lock));
    opener.setAttribute('aria-expanded', lock.id === this.openId);
    element.classList.toggle('expired', left !== undefined && left <= 0);
    element.classList.toggle('wanted', lock.waiters > 0);
    cells.slice(1).forEach((cell, i) => setCell(cell, texts[i]));
  }
  // Whose details are open; undefined: nobody's. focus: where they were opened.
  mark(id, {focus = false} = {}) {
    const was = this.rows.get(this.openId);
    this.openId = id;
    this.tick(readClock());
    if (focus) {
      (was === undefined ? byId('locks') : was.opener).focus();
    }
  }
}
