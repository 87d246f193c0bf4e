// The quorum and the nodes.

const NODE_COLUMNS = [
  ['Node', 'name'], ['State', 'state'], ['Reason', 'reason wide'],
  ['Since', 'number'], ['Votes in', 'number'], ['Clock offset', 'number'],
  ['Round trip', 'number'],
];

// When, on the page's clock, a quorum is back, as quarantines end; undefined:
// it is there, or nobody knows.
function findQuorumAt({voting, quorum, nodes}) {
  const ends = nodes.filter((node) => node.endsAt !== undefined)
    .map((node) => node.endsAt).sort((a, b) => a - b);
  return quorum > voting ? ends[quorum - voting - 1] : undefined;
}

function judge({voting, quorum, total}) {
  const margin = voting - quorum;
  const count = `${voting} of ${plural(total, 'node votes', 'nodes vote')}`;
  if (margin < 0) {
    return {level: 'bad', line: 'No quorum: no lock is granted.',
            detail: `${count}; ${quorum} are needed.`};
  }
  const level = voting === total ? 'good' : 'less';
  if (margin === 0 && total > 1) {
    return {level, line: 'Locking works, but no other node may fail.',
            detail: `${count}, no more than are needed.`};
  }
  const more = margin === 0 ? 'none may fail' : `${margin} more may fail`;
  return {level, line: 'Locking works.', detail: `${count}; ${more}.`};
}

function formatOffset({clock_lead_ms: lead, clock_steps: steps}) {
  if (lead === undefined) {
    return '';
  }
  const sign = lead > 0 ? '+' : lead < 0 ? '−' : '';
  const offset = `${sign}${formatCount(Math.abs(lead))} ms`;
  return steps > 0 ? `${offset}, ${plural(steps, 'step', 'steps')}` : offset;
}

class Nodes {
  constructor() {
    this.rows = new Map();
    this.states = new Map();
  }

  show(answer, now) {
    for (const node of answer.nodes) {
      node.sinceAt = now - node.state_age_ms;
      if (node.quarantine_ms !== undefined) {
        node.endsAt = now + node.quarantine_ms;
      }
    }
    this.answer = answer;
    document.title = `${judge(answer).line.replace(/[.:,].*/, '')} – redlockd`;
    this.tellNews();
    keepRows(byId('nodes'), this.rows, answer.nodes.map(({node}) => node),
             () => makeRow(NODE_COLUMNS));
    this.tick(now);
  }

  // What changed is told to those who do not see it.
  tellNews() {
    const news = this.answer.nodes
      .filter(({node, state}) => this.states.has(node) &&
                                 this.states.get(node) !== state)
      .map(({node, state}) => `${node} is ${state.replaceAll('_', ' ')}.`);
    for (const {node, state} of this.answer.nodes) {
      this.states.set(node, state);
    }
    if (news.length > 0) {
      news.push(judge(this.answer).line);
      setText(byId('news'), news.join(' '));
    }
  }

  // Time goes on between two answers.
  tick(now) {
    if (this.answer === undefined) {
      return;
    }
    this.showVerdict(now);
    for (const node of this.answer.nodes) {
      this.showNode(node, now);
    }
  }

  showVerdict(now) {
    const {level, line, detail} = judge(this.answer);
    const quorumAt = findQuorumAt(this.answer);
    const hope = quorumAt === undefined ? ''
      : ` A quorum is expected in ${formatLeft(Math.max(quorumAt - now, 0))}.`;
    byId('verdict').dataset.level = level;
    setText(byId('verdict-line'), line);
    setText(byId('verdict-detail'), detail + hope);
    this.showPips();
    this.showIll();
  }

  // Those that vote come first; a line stands behind the quorum.
  showPips() {
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

  showIll() {
    const list = byId('ill');
    const ill = this.answer.nodes.filter(({voting}) => !voting);
    while (list.childElementCount > ill.length) {
      list.lastChild.remove();
    }
    ill.forEach(({node, detail}, i) => {
      const item = list.children[i] ||
                   list.appendChild(makeElement('li'));
      if (item.childElementCount === 0) {
        item.append(document.createElement('bdi'), ' does not vote: ',
                    document.createElement('bdi'));
      }
      setText(item.firstChild, node);
      setText(item.lastChild, detail);
    });
  }

  showNode(node, now) {
    const {element, cells} = this.rows.get(node.node);
    element.dataset.voting = node.voting;
    const texts = [
      node.address === node.node ? node.node : `${node.node}=${node.address}`,
      node.state.replaceAll('_', ' '),
      // of a node that votes: that it is not durable, or what it lacks
      node.detail.replace(/^admitted(; )?/, ''),
      formatDuration(Math.max(now - node.sinceAt, 0)),
      node.endsAt === undefined ? ''
        : formatLeft(Math.max(node.endsAt - now, 0)),
      formatOffset(node),
      node.rtt_us === undefined ? '' : formatLatency(node.rtt_us / 1e6),
    ];
    cells.forEach((cell, i) => setCell(cell, texts[i]));
  }
}
