// SPDX-License-Identifier: MIT
// The headline: whether locking works, as far as this server tells, and how old
// that is. What is old is told as such.

// an answer that is older than this, or not there after it, is missing
const LATE_MS = 4000;
const NO_ANSWER = 'This server does not respond.';

// The states on the way to a first vote: nothing is wrong with such a node.
const STARTING = ['connecting', 'admitting', 'first_start'];

// When, on the page's clock, a quorum is back, as quarantines end; undefined:
// it is there, or nobody knows.
function findQuorumAt({voting, quorum, nodes}) {
  const ends = nodes.filter((node) => node.endsAt !== undefined)
    .map((node) => node.endsAt).sort((a, b) => a - b);
  return quorum > voting ? ends[quorum - voting - 1] : undefined;
}

// More than two names would be a list, and that is the table.
function describeMissing(nodes) {
  const names = nodes.filter(({voting}) => !voting).map(({node}) => node);
  const who = names.length > 2 ? `${names.length} nodes` : names.join(' and ');
  return `${who} ${names.length === 1 ? 'does' : 'do'} not vote`;
}

// What the nodes of an answer mean.
function judge({voting, quorum, total, nodes}) {
  const margin = voting - quorum;
  const count = `${voting} of ${plural(total, 'node votes', 'nodes vote')}`;
  if (margin < 0) {
    const starting = nodes.filter(({state}) => STARTING.includes(state));
    const isStart = voting + starting.length >= quorum;
    return {level: isStart ? 'less' : 'bad',
            line: `No quorum${isStart ? ' yet' : ''}: no lock is granted.`,
            title: `No quorum${isStart ? ' yet' : ''}`,
            detail: `${count}; ${quorum} are needed.`,
            alert: isStart ? '' : 'RedlockdNoQuorum'};
  }
  if (voting === total) {
    return {level: 'good', line: 'Locking works.', title: 'Locking works',
            detail: `${count}; ` +
                    `${margin === 0 ? 'none' : `${margin} more`} may fail.`,
            alert: ''};
  }
  const missing = describeMissing(nodes);
  return margin === 0
    ? {level: 'less', title: count,
       line: `Locking works, but no other node may fail: ${missing}.`,
       detail: `${count}, no more than are needed.`,
       alert: 'RedlockdNoNodeToSpare'}
    : {level: 'less', title: count, line: `Locking works, but ${missing}.`,
       detail: `${count}; ${margin} more may fail.`, alert: ''};
}

// Who is refused has met no outage.
function describeFailure({message, status}) {
  if (status === 403 || status === 429) {
    return {level: 'unknown', line: message, title: 'Refused', alert: ''};
  }
  return {level: 'bad', line: message, title: 'No response',
          alert: status === undefined ? 'RedlockdDown'
            : status >= 500 ? 'RedlockdServerErrors' : ''};
}

class Verdict {
  // Calls change() when somebody wants to show another token.
  constructor(change) {
    byId('other-token').addEventListener('click', change);
  }

  ask(now) {
    this.askedAt = now;
  }

  // True if it did not answer before.
  take(answer, now) {
    const wasGone = this.isClosed || this.error !== undefined;
    Object.assign(this, {answer, answeredAt: now, error: undefined,
                         isClosed: false});
    this.show(now);
    return wasGone;
  }

  fail(error, now) {
    Object.assign(this, {error, isClosed: false});
    this.show(now);
  }

  hasQuorum() {
    return this.answer !== undefined &&
           this.answer.voting >= this.answer.quorum;
  }

  // Somebody has to show a token first.
  close() {
    this.isClosed = true;
  }

  // What is the matter with the server rather than its nodes; undefined:
  // nothing.
  findTrouble(now) {
    const {error, answeredAt = -Infinity, askedAt = now} = this;
    const isLimited = error !== undefined && error.status === 429;
    if (error !== undefined && !(isLimited && now - answeredAt < FRESH_MS)) {
      return describeFailure(error);
    }
    if (now - answeredAt < (isLimited ? FRESH_MS : LATE_MS)) {
      return undefined;
    }
    return now - askedAt < LATE_MS
      ? {level: 'unknown', line: 'Contacting the server …', title: 'Contacting',
         alert: ''}
      : describeFailure({message: NO_ANSWER});
  }

  show(now) {
    if (this.isClosed || document.hidden) {
      return;
    }
    const trouble = this.findTrouble(now);
    const known = this.answer === undefined ? undefined : judge(this.answer);
    const {level, line, title, alert} = trouble || this.describeServer(known);
    const headline = byId('verdict-line');
    byId('verdict').dataset.level = level;
    document.body.classList.toggle('old', trouble !== undefined);
    headline.setAttribute('aria-live', level === 'bad' ? 'assertive' : 'polite');
    setText(headline, line);
    document.title = `${title} – redlockd`;
    setText(byId('verdict-detail'), known === undefined ? ''
      : trouble === undefined ? known.detail + this.describeHope(now)
        : `${this.isStopping ? 'It was about to stop. ' : ''}` +
          `Last known: ${known.detail}`);
    setRunbook(byId('verdict-detail').parentElement, alert);
    setText(byId('updated'), this.describeAge(trouble, now));
    byId('other-token').hidden = this.error === undefined ||
                                 this.error.code !== 'forbidden';
    this.showPips();
  }

  describeServer(known) {
    return !this.isStopping ? known
      : {level: 'less', line: 'This server is about to stop.',
         title: 'Stopping', alert: ''};
  }

  describeHope(now) {
    const quorumAt = findQuorumAt(this.answer);
    return quorumAt === undefined ? ''
      : ` A quorum is expected in ${formatLeft(Math.max(quorumAt - now, 0))}.`;
  }

  describeAge(trouble, now) {
    if (this.answeredAt === undefined) {
      return this.error === undefined ? '' : 'It has not responded yet.';
    }
    const age = formatDuration(Math.max(now - this.answeredAt, 0));
    return trouble === undefined ? `Updated ${age} ago.`
      : `Last response ${age} ago, at ${formatTime(new Date(this.answeredAt))}.`;
  }

  // Those that vote come first; a line stands behind the quorum.
  showPips() {
    if (this.answer === undefined) {
      return;
    }
    const {voting, quorum, total} = this.answer;
    const pips = byId('pips');
    while (pips.childElementCount > total) {
      pips.lastChild.remove();
    }
    while (pips.childElementCount < total) {
      pips.append(makeElement('span'));
    }
    [...pips.children].forEach((pip, i) => {
      pip.className = (i < voting ? 'votes' : '') +
                      (i === quorum - 1 ? ' last' : '');
    });
  }
}
