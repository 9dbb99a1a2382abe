import type { Command } from 'commander';
import type { Checkpoint } from '../../contract/checkpoint.ts';
import { defined } from '../../contract/json.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { count } from '../input.ts';
import {
  ARCHIVE,
  noCheckpoint,
  noCheckpoints,
  openSaver,
  readWhole,
  sessionStateOf,
} from '../read-checkpoint.ts';
import { clean, inline } from '../terminal.ts';
import { audit } from './checkpoints-audit.ts';
import { exportCheckpoints } from './checkpoints-export.ts';
import { fork } from './checkpoints-fork.ts';
import { rewind } from './checkpoints-rewind.ts';

/** The most characters of a value in a list of changes. */
const BRIEF = 200;

/** `perdure checkpoints`: the past of a session, and how to continue from it. */
export function checkpoints(program: Command, cli: Cli): void {
  const group = program
    .command('checkpoints')
    .summary('list, compare, export, fork, rewind')
    .description(
      'Read the past of a session, and continue from it. Each completed workflow task is a checkpoint. Reading ' +
        'needs no worker, and works for closed sessions.',
    );
  ls(group, cli);
  show(group, cli);
  diff(group, cli);
  fork(group, cli);
  rewind(group, cli);
  exportCheckpoints(group, cli);
  audit(group, cli);
}

function ls(group: Command, cli: Cli): void {
  group
    .command('ls')
    .description('list checkpoints, newest first')
    .argument('<session>', 'id of the session')
    .option('--limit <count>', 'at most this many', count, 20)
    .option('--before <checkpoint>', 'only checkpoints before this one')
    .option(...ARCHIVE)
    .action(
      async (
        sessionId: string,
        { limit, before, archive }: { limit: number; before?: string; archive?: string },
      ) => {
        const { terminal } = cli;
        const saver = await openSaver(cli, sessionId, archive);
        const found = await terminal.wait(`reading ${sessionId}`, () =>
          saver.list(sessionId, { limit, ...defined({ before }) }),
        );
        if (found.length === 0 && limit > 0) {
          if (before === undefined) throw await noCheckpoints(cli, sessionId);
          if ((await saver.get(sessionId, { checkpointId: before })) === null)
            throw noCheckpoint(sessionId, before);
        }
        if (terminal.json) {
          for (const checkpoint of found) terminal.item(summaryOf(checkpoint), () => null);
          return;
        }
        const { table } = await import('../render.ts');
        const rows = found.map((checkpoint) => {
          const { id, created_at, turn, phase, messages } = summaryOf(checkpoint);
          const { unreadable } = checkpoint.metadata;
          const facts = [turn, phase, messages].map((fact) => String(fact ?? '-'));
          return [
            id,
            created_at,
            ...facts,
            ...(unreadable === undefined ? [] : [`unreadable: ${inline(unreadable)}`]),
          ].map(clean);
        });
        const [head = '', ...lines] = table([['ID', 'TIME', 'TURN', 'PHASE', 'MESSAGES'], ...rows]);
        const last = found.at(-1);
        const more = found.length < limit || last === undefined || last.parent_id === null;
        const next = more
          ? []
          : [clean(`  next: ${command('checkpoints', 'ls', sessionId, '--before', last.id)}`)];
        terminal.write([terminal.style('bold', head), ...lines, ...next, ''].join('\n'));
      },
    );
}

/** A checkpoint in a list: the record without its state. */
function summaryOf(checkpoint: Checkpoint): Omit<Checkpoint, 'state'> & {
  turn: number | null;
  phase: string | null;
  messages: number | null;
} {
  const { id, thread_id, created_at, parent_id, metadata } = checkpoint;
  const { turn, phase } = metadata;
  const session = sessionStateOf(checkpoint);
  return {
    id,
    thread_id,
    created_at,
    parent_id,
    metadata,
    turn: typeof turn === 'number' ? turn : null,
    phase: typeof phase === 'string' ? phase : null,
    messages: session && (session.past?.messages ?? 0) + session.transcript.length,
  };
}

function show(group: Command, cli: Cli): void {
  group
    .command('show')
    .description('show the whole state at a checkpoint')
    .argument('<session>', 'id of the session')
    .argument('[checkpoint]', 'id of the checkpoint (default: the latest)')
    .option('--messages <count>', 'show the last <count> messages', count, 6)
    .option('--calls <count>', 'show the last <count> tool calls', count, 20)
    .option(...ARCHIVE)
    .addHelpText('after', '\nWith --json, it prints the whole record.')
    .action(
      async (
        sessionId: string,
        id: string | undefined,
        limits: { messages: number; calls: number; archive?: string },
      ) => {
        const { terminal } = cli;
        const checkpoint = await terminal.wait(`reading ${sessionId}`, () =>
          readWhole(cli, sessionId, id, limits.archive),
        );
        const [render, { callLines }, { sessionView }] = await Promise.all([
          import('../render.ts'),
          import('../calls.ts'),
          import('../../session/views.ts'),
        ]);
        terminal.result(checkpoint, () => {
          const title = (text: string): string => terminal.style('bold', text);
          const parts = [
            `${title('checkpoint')} ${clean(checkpoint.id)}\n` +
              terminal.style(
                'dim',
                `  ${checkpoint.created_at} · parent ${clean(checkpoint.parent_id ?? '-')}`,
              ),
          ];
          const state = sessionStateOf(checkpoint);
          if (state === null) return [...parts, inline(checkpoint.state)].join('\n\n');
          const view = sessionView(state);
          parts.push(render.header(view, terminal));
          if (view.plan.length > 0) parts.push(`${title('Plan')}\n${render.planLines(view.plan)}`);
          parts.push(`${title('Budget')}\n${render.budgetLines(view.budget)}`);
          const messages = last(state.transcript, limits.messages);
          const calls = last(state.calls, limits.calls);
          if (messages.length > 0)
            parts.push(`${title('Messages')}\n${render.messageLines(messages, terminal)}`);
          if (calls.length > 0) parts.push(`${title('Tool calls')}\n${callLines(calls, terminal)}`);
          return parts.join('\n\n');
        });
      },
    );
}

function last<T>(items: readonly T[], most: number): T[] {
  return items.slice(Math.max(0, items.length - most));
}

function diff(group: Command, cli: Cli): void {
  group
    .command('diff')
    .description('show what changed between two checkpoints')
    .argument('<session>', 'id of the session')
    .argument('<from>', 'id of a checkpoint')
    .argument('<to>', 'id of another checkpoint')
    .option(...ARCHIVE)
    .action(async (sessionId: string, from: string, to: string, { archive }: { archive?: string }) => {
      const { terminal } = cli;
      const { diff: changesBetween } = await import('../../checkpoints/diff.ts');
      const changes = await terminal.wait(`reading ${sessionId}`, async () =>
        changesBetween(
          await readWhole(cli, sessionId, from, archive),
          await readWhole(cli, sessionId, to, archive),
        ),
      );
      terminal.result({ sessionId, from, to, changes }, () =>
        changes.length === 0
          ? 'the states are equal'
          : changes
              .map((change) => {
                const path = clean(change.path);
                if (change.op === 'add')
                  return terminal.style('green', `+ ${path} ${inline(change.value, BRIEF)}`);
                if (change.op === 'remove')
                  return terminal.style('red', `- ${path} ${inline(change.before, BRIEF)}`);
                return `~ ${path} ${inline(change.before, BRIEF)} -> ${inline(change.value, BRIEF)}`;
              })
              .join('\n'),
      );
    });
}
