// SPDX-License-Identifier: MIT
// The table of the nodes.

const NODE_COLUMNS = [
  ['Node', 'name'], ['State', 'state'], ['Reason', 'reason wide'],
  ['Since', 'number'], ['Votes in', 'number'], ['Clock offset', 'number'],
  ['Round trip', 'number'],
];
const REASON = 2;
const OFFSET = 5;

// as the alert has it
const OFFSET_MAX_MS = 250;

// What a node says of its durability is told once for all that say the same;
// and how long it waits is a column.
const DURABILITY = /(?:^|; )not durable: (.*?)(?=; its user|; it does not|$)/;
const WAIT = /; votes (?:again )?in \d+ s(?=;|$)/;

const LACK = /its user lacks|it does not know/;

// What the runbook has about the state of a node; '': nothing is wrong with it.
function sectionOf({voting, state, detail}) {
  if (LACK.test(detail)) {
    return 'What a node may lack';
  }
  if (voting || STARTING.includes(state)) {
    return '';
  }
  if (state === 'clock_stepped' || /clock stepped/.test(detail)) {
    return 'RedlockdNodeClockStepped';
  }
  if (state === 'skewed' || state === 'clock_unproven') {
    return 'RedlockdNodeClockIsOff';
  }
  return state === 'quarantined' && /lost locks|lost its data/.test(detail)
    ? 'RedlockdNodeLostItsData' : 'RedlockdNodeNotVoting';
}

const hasClockOff = ({clock_lead_ms: lead = 0}) =>
  Math.abs(lead) > OFFSET_MAX_MS;

// Which nodes are not durable, by the reason.
function noteDurability(nodes) {
  const byReason = new Map();
  for (const {node, detail} of nodes) {
    const [, reason] = DURABILITY.exec(detail) || [];
    if (reason !== undefined) {
      byReason.set(reason, [...(byReason.get(reason) || []), node]);
    }
  }
  return [...byReason].map(([reason, names]) => {
    const who = names.length < nodes.length ? names.join(', ')
      : nodes.length === 1 ? 'the node' : `all ${nodes.length} nodes`;
    return {text: `Not durable: ${who} (${reason}).`,
            alert: 'RedlockdNodeNotDurable'};
  });
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
    this.tellNews();
    keepRows(byId('nodes'), this.rows, answer.nodes.map(({node}) => node),
             () => makeRow(NODE_COLUMNS));
    this.tick(now);
  }

  // What changed is told to those who do not see it; the headline speaks for
  // itself.
  tellNews() {
    const news = this.answer.nodes
      .filter(({node, state}) => this.states.has(node) &&
                                 this.states.get(node) !== state)
      .map(({node, state}) => `${node} is ${state.replaceAll('_', ' ')}.`);
    for (const {node, state} of this.answer.nodes) {
      this.states.set(node, state);
    }
    if (news.length > 0) {
      setText(byId('news'), news.join(' '));
    }
  }

  // Time goes on between two answers.
  tick(now) {
    if (this.answer === undefined) {
      return;
    }
    for (const node of this.answer.nodes) {
      this.showNode(node, now);
    }
    showNotes(byId('node-notes'), noteDurability(this.answer.nodes));
  }

  showNode(node, now) {
    const {element, cells} = this.rows.get(node.node);
    element.dataset.voting = node.voting;
    const texts = [
      node.address === node.node ? node.node : `${node.node}=${node.address}`,
      node.state.replaceAll('_', ' '),
      this.describe(node),
      formatDuration(Math.max(now - node.sinceAt, 0)),
      node.endsAt === undefined ? ''
        : formatLeft(Math.max(node.endsAt - now, 0)),
      formatOffset(node),
      node.rtt_us === undefined ? '' : formatLatency(node.rtt_us / 1e6),
    ];
    cells.forEach((cell, i) => setCell(cell, texts[i]));
    setRunbook(cells[REASON], sectionOf(node));
    setRunbook(cells[OFFSET], node.voting && hasClockOff(node)
      ? 'RedlockdNodeClockIsOff' : '');
  }

  // Of a node that votes: what else it lacks.
  describe({detail, endsAt}) {
    const reason = detail.replace(DURABILITY, '').replace(/^admitted(; )?/, '');
    return endsAt === undefined ? reason : reason.replace(WAIT, '');
  }
}
