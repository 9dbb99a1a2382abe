import type { AgentChange, BudgetLimits } from '../contract/manifest.ts';
import type { Block, Message } from '../contract/messages.ts';
import type { NextStep } from '../contract/next-step.ts';
import type { Notice, PlanStep } from '../contract/state.ts';
import type { ApprovalNeeds, BudgetView, PendingCall, SessionView } from '../contract/views.ts';
import { changeInWords } from '../session/agent-change.ts';
import { commandsFor } from '../session/commands.ts';
import { clean, inline, type Terminal } from './terminal.ts';

/** The most characters of a value in a list. */
const BRIEF = 300;

/** The phases in words. */
const PHASE: Record<SessionView['phase'], string> = {
  starting: 'starting',
  idle: 'idle: waits for a message',
  thinking: 'thinking: waits for the model',
  acting: 'acting: runs tools',
  approval: 'waits for approval',
  unknown_effect: 'waits for a person: the outcome of a call is unknown',
  waiting: 'waiting',
  paused: 'paused',
  cancelling: 'cancelling',
  closed: 'closed',
};

/** What a session does. A call whose tool is missing needs a worker first. */
function doingOf({ phase, pending }: SessionView): string {
  const needs = pending.map(({ status, tool }) => ({
    kind: status.kind === 'awaiting' ? status.person?.kind : status.kind,
    misfit: status.kind === 'stuck' && status.misfit === true,
    taskQueue:
      status.kind === 'awaiting' && status.person !== undefined && 'taskQueue' in status.person
        ? status.person.taskQueue
        : null,
    tool,
  }));
  if (phase !== 'unknown_effect' || needs.some(({ kind }) => kind === 'unknown')) return PHASE[phase];
  const misfits = needs.filter(({ misfit }) => misfit).map(({ tool }) => clean(tool));
  if (misfits.length > 0)
    return `waits: its context does not fit the tool ${[...new Set(misfits)].join(', ')}`;
  const queues = needs.flatMap(({ taskQueue }) => (taskQueue === null ? [] : [clean(taskQueue)]));
  if (queues.length > 0) return `waits for a worker on task queue ${[...new Set(queues)].join(', ')}`;
  const missing = needs.filter(({ kind }) => kind === 'stuck').map(({ tool }) => clean(tool));
  return `waits for a worker that has the tool ${[...new Set(missing)].join(', ')}`;
}

/** The first lines of a session: what it is and what it does. */
export function header(view: SessionView, terminal: Terminal): string {
  const { status } = view;
  const said = status.kind === 'ended' ? status.run : status.kind;
  const doing = said === 'active' ? doingOf(view) : said;
  const facts = [
    view.mode,
    `turn ${view.turn}`,
    counted(view.messages, 'message'),
    counted(view.calls, 'call'),
    ...(view.queued > 0 ? [`${view.queued} queued`] : []),
    `started ${view.createdAt}`,
  ];
  const lines = [
    `${terminal.style('bold', clean(view.sessionId))}  ${clean(view.agent)}  ${terminal.style('cyan', doing)}`,
    terminal.style('dim', `  ${facts.join(' · ')}`),
  ];
  if (view.models.length > 0) lines.push(terminal.style('dim', `  models ${clean(view.models.join(', '))}`));
  if (view.context !== null) lines.push(`  context ${inline(view.context, 400)}`);
  if (view.scratchpadRoot !== null) lines.push(`  scratchpad ${clean(view.scratchpadRoot)}`);
  if (status.kind === 'cancelled')
    lines.push(`  cancelled by ${clean(status.by)} at ${status.at}${because(status.reason)}`);
  if (status.kind === 'completed') lines.push(`  completed at ${status.at}`);
  if (status.kind === 'ended') lines.push(`  ${said} at ${status.at ?? '-'}${because(status.reason)}`);
  if (status.kind === 'failed') lines.push(`  failed at ${status.at}: ${clean(status.message)}`);
  return lines.join('\n');
}

/** What the session waits for, with the next commands. Empty when it waits for nothing. */
export function needs(view: SessionView, terminal: Terminal): string {
  const lines: string[] = [];
  if (view.status.kind !== 'active') return '';
  if (view.paused !== null) {
    const { by, at, reason } = view.paused;
    lines.push(`paused by ${clean(by)} at ${at}${because(reason)}`);
    lines.push(nextLines({ action: 'resume', sessionId: view.sessionId }, terminal));
  }
  if (view.wait !== null) {
    lines.push(
      `${terminal.style('yellow', view.wait.reason)} since ${view.wait.since}: ${clean(view.wait.message)}`,
      nextLines(view.wait.next, terminal),
    );
  }
  if (view.limited !== undefined) {
    const { message, since } = view.limited;
    lines.push(`${terminal.style('yellow', 'rate_limited')} since ${since}: ${clean(message)}`);
    lines.push('  goes on by itself');
  }
  for (const call of view.pending) lines.push(pendingCall(call, terminal));
  return lines.join('\n');
}

/** The commands of {@link needs}, in its order. */
export function nextOf({ status, paused, wait, pending, sessionId }: SessionView): string[] {
  if (status.kind !== 'active') return [];
  const steps: NextStep[] = [
    ...(paused === null ? [] : [{ action: 'resume', sessionId } as const]),
    ...(wait === null ? [] : [wait.next]),
    ...pending.map(({ next }) => next),
  ];
  return [...new Set(steps.flatMap(commandsFor))];
}

/** The commands of a next step, one a line, to be pasted as they are. */
function nextLines(next: NextStep, terminal: Terminal, isQuestion = false): string {
  return commandsFor(next)
    .filter((line) => !isQuestion || /^perdure (respond|reject) /.test(line))
    .map((line, index) =>
      index === 0 ? `  next: ${terminal.style('green', clean(line))}` : `    or: ${clean(line)}`,
    )
    .join('\n');
}

/** A call that waits for a person, with all of its arguments. */
function pendingCall(call: PendingCall, terminal: Terminal): string {
  const { status, decision, compensates } = call;
  const undoes = compensates === undefined ? '' : `  undoes ${clean(compensates)}:`;
  const lines = [
    `${clean(call.callId)}${undoes}  ${terminal.style('bold', clean(call.tool))} ${inline(call.args)}`,
  ];
  if (status.kind === 'approval') {
    const until = status.expiresAt === null ? '' : ` until ${status.expiresAt}`;
    lines.push(`  waits for ${call.question === undefined ? 'approval' : 'an answer'}${until}`);
    if (status.question !== undefined) lines.push(`  asks: ${clean(status.question.text)}`);
    if (call.needs !== undefined) lines.push(...approversLines(call.needs));
    if (status.problem !== undefined)
      lines.push(`  the edited arguments were refused: ${clean(status.problem)}`);
  } else {
    const reason = status.kind === 'awaiting' ? status.person?.reason : status.reason;
    lines.push(`  ${status.kind}: ${clean(reason ?? '')}`);
  }
  if (decision !== null) lines.push(`  ${decision.decision} by ${clean(decision.by)} at ${decision.at}`);
  if (status.kind === 'unknown')
    lines.push('  landed: it happened; absent: it did not, and runs again; failed: it does not run again');
  lines.push(nextLines(call.next, terminal, status.kind === 'approval' && status.question !== undefined));
  return lines.join('\n');
}

/** Who has approved a call, and who else must. */
function approversLines({ people, given, notBy, verified }: ApprovalNeeds): string[] {
  const who = verified ? 'verified people' : 'people';
  return [
    `  ${given.length} of ${people} ${who} have approved${given.length === 0 ? '' : `: ${given.map(({ by }) => clean(by)).join(', ')}`}`,
    ...(notBy.length === 0 ? [] : [`  cannot approve: ${notBy.map((name) => clean(name)).join(', ')}`]),
  ];
}

/** Spent, reserved and caps, one a line. */
export function budgetLines({ limits, spent, reserved, pool, unpriced }: BudgetView): string {
  const tokens = spent.inputTokens + spent.outputTokens;
  const rows: [keyof BudgetLimits, number, number, (value: number) => string][] = [
    ['usd', spent.usd, reserved.usd, (value) => `$${value.toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1')}`],
    ['tokens', tokens, reserved.tokens, String],
    ['turns', spent.turns, 0, String],
    ['toolCalls', spent.toolCalls, 0, String],
    ['activeMs', spent.activeMs, 0, (value) => `${(value / 1_000).toFixed(1)} s`],
  ];
  const names = { usd: 'usd', tokens: 'tokens', turns: 'turns', toolCalls: 'tool calls', activeMs: 'active' };
  const lost =
    spent.lostReplies === 0
      ? ''
      : `\n  of this, ${spent.lostReplies} lost model replies: at most $${spent.lostUsd.toFixed(6)}`;
  const free = unpriced.length === 0 ? '' : `no price for ${clean(unpriced.join(', '))}`;
  return rows
    .map(([key, used, held, write]) => {
      const cap = limits[key];
      if (key === 'usd' && free !== '') return `  usd        ${used > 0 ? `${write(used)}, ` : ''}${free}`;
      return (
        `  ${names[key].padEnd(10)} ${write(used)}` +
        (held > 0 ? ` + ${write(held)} reserved` : '') +
        (cap === undefined ? '' : ` of ${write(cap)}`)
      );
    })
    .join('\n')
    .concat(pool === undefined ? '' : `\n  pool       ${clean(pool.id)}`)
    .concat(lost);
}

export function planLines(plan: readonly PlanStep[]): string {
  const mark = { done: 'x', in_progress: '>', pending: ' ' };
  return plan
    .map(({ id, title, status, postconditions, evidence }) => {
      const shown = `${evidence.length}/${postconditions.length} shown`;
      return `  [${mark[status]}] ${clean(id)} ${clean(title)}${postconditions.length > 0 ? ` (${shown})` : ''}`;
    })
    .join('\n');
}

export function messageLines(messages: readonly Message[], terminal: Terminal): string {
  return messages
    .map((message) =>
      [
        `  ${terminal.style('bold', authorOf(message))} ${terminal.style('dim', message.created_at)}`,
        ...message.blocks.map((block) => `    ${blockText(block).replaceAll('\n', '\n    ')}`),
      ].join('\n'),
    )
    .join('\n');
}

function authorOf({ role, summary, pinned, repair, aside, report }: Message): string {
  if (summary !== undefined) return `summary of messages 0 to ${summary.before - 1}`;
  if (repair === true) return 'asked again';
  if (report !== undefined) return `report of ${report.agent}: ${report.status}`;
  if (aside === true) return `${role} (on the side)`;
  return pinned === true ? `${role} (pinned)` : role;
}

function blockText(block: Block): string {
  switch (block.kind) {
    case 'text':
      return clean(block.text);
    case 'reasoning':
      return `(${clean(block.text)})`;
    case 'file': {
      const { filename, media_type: type, url, value } = block;
      const where = url ?? `${value?.bytes ?? 0} bytes, ${value?.digest ?? ''}`;
      return clean(`[${filename ?? 'file'}: ${type}, ${where}]`);
    }
    case 'source':
      return clean(`[source: ${[block.title ?? block.filename, block.url].filter(Boolean).join(', ')}]`);
    case 'tool_call':
      return `-> ${clean(block.name)} ${inline(block.args, BRIEF)}  [${clean(block.id)}]`;
    case 'tool_result':
      return `<- ${clean(block.name)}${block.is_error ? ' failed' : ''} ${inline(block.content, BRIEF)}  [${clean(block.call_id)}]`;
    default:
      return block satisfies never;
  }
}

/** The last changes of the agent's definition. */
export function changeLines(changes: readonly AgentChange[], terminal: Terminal): string {
  const lines = changes.slice(-3).map((change) => {
    const { at, turn, from, to } = change;
    const when = `  ${at} after turn ${turn}: ${clean(from)} to ${clean(to)}`;
    return `${when}\n    ${clean(changeInWords(change))}`;
  });
  return [terminal.style('bold', 'Agent changes'), ...lines].join('\n');
}

/** The last notices. Changes of the agent have lines of their own. */
export function noticeLines(notices: readonly Notice[], terminal: Terminal): string {
  const others = notices.filter(({ kind }) => kind !== 'manifest');
  if (others.length === 0) return '';
  const lines = others.slice(-5).map(({ at, kind, message }) => `  ${at} ${clean(kind)}: ${clean(message)}`);
  return [terminal.style('bold', 'Notices'), ...lines].join('\n');
}

/** Columns as wide as their widest cell. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function because(reason: string): string {
  return reason === '' ? '' : `: ${clean(reason)}`;
}
