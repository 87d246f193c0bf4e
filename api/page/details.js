// SPDX-License-Identifier: MIT
// One lock: who holds it, and who has held it since somebody looks.

const HANDOVERS_MAX = 100;
const HANDOVER_COLUMNS = [
  ['Time', 'time'], ['Change', 'change wide'], ['Owner', ''],
  ['Fencing token', 'number'],
];

// Shows terms and what is said of them; leaves what does not change.
function showFactList(list, pairs) {
  while (list.childElementCount > 2 * pairs.length) {
    list.lastChild.remove();
  }
  pairs.forEach(([term, text], i) => {
    if (list.children[2 * i] === undefined) {
      const value = document.createElement('dd');
      value.append(document.createElement('bdi'));
      list.append(document.createElement('dt'), value);
    }
    setText(list.children[2 * i], term);
    setText(list.children[2 * i + 1].firstChild, text);
  });
}

function describeHolder(lock) {
  if (lock.mode === 'shared') {
    return lock.readers ? plural(lock.readers, 'reader', 'readers') : 'readers';
  }
  if (lock.fencing_token === undefined) {
    return 'unknown';
  }
  return lock.owner === undefined ? 'no owner given' : lock.owner;
}

// What the list, the details and the dialog show of a holder.
function factsOf(lock, now) {
  const left = lock.endsAt === undefined ? undefined : lock.endsAt - now;
  return [
    ['Holder', describeHolder(lock)],
    ['Fencing token', lock.fencing_token === undefined
      ? 'none' : String(lock.fencing_token)],
    ['Expires in', left === undefined ? 'never, or unknown'
      : left > 0 ? formatLeft(left) : 'expired'],
  ];
}

// How it came to be so cannot be told: a release, or the end of the TTL.
function describeChange(lock) {
  if (!lock.held) {
    return 'free: released or expired';
  }
  if (lock.mode === 'shared') {
    return `shared by ${describeHolder(lock)}`;
  }
  return lock.fencing_token === undefined
    ? 'held without a fencing token' : 'acquired';
}

class Details {
  // Calls force(lock) when somebody wants it released by force; closed() when
  // they want to see no more.
  constructor({force, closed}) {
    this.closed = closed;
    this.watch = new Watch({
      tell: (lock) => this.take(lock),
      fail: (error) => this.fail(error),
      rest: () => this.rest(),
    });
    byId('details-close').addEventListener('click', () => this.close());
    byId('force').addEventListener('click', () => force(this.lock));
  }

  open(lock) {
    this.id = lock.id;
    this.restsSince = undefined;
    byId('handovers').replaceChildren();
    setText(byId('details-name'), describeResource(lock));
    this.tell('', '');
    this.refuse('');
    this.lock = lock;
    this.add(new Date(), 'held when you opened this', lock);
    byId('details').hidden = false;
    this.tick(readClock());
    this.watch.begin(lock);
    byId('details-title').focus({preventScroll: true});
    byId('details').scrollIntoView({block: 'nearest'});
  }

  close() {
    const id = this.id;
    this.watch.end();
    this.id = this.lock = undefined;
    byId('details').hidden = true;
    this.closed(id);
  }

  // Other news than those of the watch: a failure is an alert.
  tell(news, failure) {
    setText(byId('force-news'), news);
    setText(byId('force-failure'), failure);
  }

  // The server lets this visitor not force: until the details are opened anew.
  refuse(why) {
    this.refusal = why;
  }

  // ---- what the watch finds ------------------------------------------------

  take(lock) {
    const now = readClock();
    if (lock.remaining_ms !== undefined) {
      lock.endsAt = now + lock.remaining_ms;
    }
    if (this.restsSince !== undefined) {
      this.add(this.restsSince,
               `not watched until ${formatTime(new Date())}: changes before ` +
               'that are missing');
      this.restsSince = undefined;
    }
    setText(byId('details-failure'), '');
    if (lock.version !== this.lock.version) {
      const change = describeChange(lock);
      this.add(new Date(), change, lock);
      setText(byId('details-change'), `The lock is ${change}.`);
    }
    this.lock = lock;
    this.tick(now);
  }

  fail({message}) {
    this.rest();
    setText(byId('details-failure'),
            `${message} The lock may have changed since; the page is trying ` +
            'again.');
  }

  rest() {
    this.restsSince = this.restsSince || new Date();
  }

  // The newest comes first, and the oldest leave.
  add(date, change, lock = {}) {
    const {element, cells} = makeRow(HANDOVER_COLUMNS);
    const time = makeElement('time', '', formatTime(date));
    time.dateTime = date.toISOString();
    cells[0].firstChild.append(time);
    setCell(cells[1], change);
    setCell(cells[2], lock.owner || '');
    setCell(cells[3], lock.fencing_token === undefined
      ? '' : String(lock.fencing_token));
    const rows = byId('handovers');
    rows.prepend(element);
    while (rows.childElementCount > HANDOVERS_MAX) {
      rows.lastElementChild.remove();
    }
  }

  // ---- what is shown -------------------------------------------------------

  tick(now) {
    if (this.id === undefined) {
      return;
    }
    const {lock} = this;
    showFactList(byId('details-facts'), !lock.held
      ? [['Holder', 'nobody']]
      : [...factsOf(lock, now), ['Waiters', formatCount(lock.waiters)]]);
    const why = this.whyNoForce();
    setText(byId('force-why'), why);
    this.hideForce(!lock.held || why !== '');
  }

  whyNoForce() {
    if (this.refusal !== '') {
      return this.refusal;
    }
    const {lock} = this;
    return !lock.held || lock.fencing_token !== undefined ||
           lock.mode === 'shared' ? ''
      : 'This lock cannot be released here, because it has no fencing token. ' +
        'Either the nodes disagree, or another library holds the lock: delete ' +
        'its key on the nodes.';
  }

  // The focus is not lost with the button.
  hideForce(isHidden) {
    const button = byId('force');
    const hadFocus = document.activeElement === button;
    button.hidden = isHidden;
    if (isHidden && hadFocus) {
      byId('details-title').focus();
    }
  }
}
