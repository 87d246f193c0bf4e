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
  constructor() {
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
      const query = new URLSearchParams({prefix, limit: PAGE});
      if (cursor !== undefined) {
        query.set('cursor', cursor);
      }
      const answer = await ask(`/locks?${query}`);
      for (const lock of answer.locks) {
        found.set(lock.id, lock);
      }
      cursor = answer.cursor;
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
    locks.sort((a, b) => a.resource < b.resource ? -1 : 1);
    this.locks = locks;
    keepRows(byId('lock-rows'), this.rows, locks.map(({id}) => id),
             () => makeRow(LOCK_COLUMNS));
    byId('locks-table').hidden = locks.length === 0;
    byId('more').hidden = !hasMore;
    const what = prefix === '' ? '' : ' that begin so';
    setText(byId('locks-note'), locks.length === 0 && !hasMore
      ? `No locks${what} are held.`
      : `${plural(locks.length, 'lock', 'locks')}${what}` +
        `${hasMore ? ', and perhaps more' : ''}.`);
    this.tick(now);
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
      lock.resource,
      lock.readers ? plural(lock.readers, 'reader', 'readers') : owner,
      lock.fencing_token === undefined ? '' : String(lock.fencing_token),
      left === undefined ? '' : left > 0 ? formatLeft(left) : 'expired',
      formatCount(lock.waiters),
      formatHeld(lock.nodes),
    ];
    const {element, cells} = this.rows.get(lock.id);
    element.classList.toggle('expired', left !== undefined && left <= 0);
    element.classList.toggle('wanted', lock.waiters > 0);
    cells.forEach((cell, i) => setCell(cell, texts[i]));
  }
}
