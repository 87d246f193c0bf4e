// The list of locks.

const LOCK_COLUMNS = [
  ['Resource', 'name resource wide'], ['Owner', ''], ['Fencing number', 'number'],
  ['Expires in', 'number'], ['Waiters', 'number'], ['Held on', 'number'],
];
const PAGE = 100;
// an answer may be short, or empty, and yet there is more: the server looks
// only so far in one call
const CALLS_MAX = 20;

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
  }

  // Asks until there is what is wanted. Returns what to show.
  async read(ask) {
    const prefix = byId('prefix').value;
    const wanted = this.wanted;
    const found = new Map();
    let cursor;
    let calls = 0;
    do {
      const query = new URLSearchParams({prefix, page_size: PAGE});
      if (cursor !== undefined) {
        query.set('cursor', cursor);
      }
      const answer = await ask(`/locks?${query}`);
      for (const lock of answer.locks) {
        found.set(lock.id, lock);
      }
      cursor = answer.next_cursor;
      calls++;
    } while (cursor !== undefined && found.size < wanted && calls < CALLS_MAX);
    return {prefix, locks: [...found.values()], hasMore: cursor !== undefined};
  }

  show({prefix, locks, hasMore}, now) {
    for (const lock of locks) {
      if (lock.remaining_ms !== undefined) {
        lock.endsAt = now + lock.remaining_ms;
      }
    }
    locks.sort((a, b) => a.resource === b.resource
      ? (a.slots === undefined ? -1 : a.slots[0]) -
        (b.slots === undefined ? -1 : b.slots[0])
      : a.resource < b.resource ? -1 : 1);
    this.locks = locks;
    keepRows(byId('lock-rows'), this.rows, locks.map(({id}) => id),
             (id) => this.makeRow(id));
    byId('locks-table').hidden = locks.length === 0;
    byId('more').hidden = !hasMore;
    const what = prefix === '' ? '' : ' that begin so';
    setText(byId('locks-note'), locks.length === 0 && !hasMore
      ? `No locks${what} are held.`
      : `${plural(locks.length, 'lock', 'locks')}${what}` +
        `${hasMore ? ', and perhaps more' : ''}.`);
    this.tick(now);
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

  // The list stays, and why it is old is told.
  fail(reason) {
    setText(byId('locks-note'), `${reason} The list may be old.`);
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
    this.tick(performance.now());
    if (focus) {
      (was === undefined ? byId('locks') : was.opener).focus();
    }
  }
}
