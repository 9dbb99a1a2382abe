import type { Command } from 'commander';
import type { Session } from '../../client/index.ts';
import type { TranscriptPage } from '../../contract/views.ts';
import type { Cli } from '../cli.ts';
import { count } from '../input.ts';
import { scratchpadLines, timesLines } from '../times.ts';

interface Options {
  messages: number;
  calls: number;
  view?: true;
}

/** `perdure show`: everything about one session. */
export function show(program: Command, cli: Cli): void {
  program
    .command('show')
    .summary('show a session')
    .description('Show a session: what it does, what it waits for, plan, budget, messages and tool calls.')
    .argument('<session>', 'id of the session')
    .option('--messages <count>', 'show the last <count> messages', count, 6)
    .option('--calls <count>', 'show the last <count> tool calls', count, 20)
    .option('--view', 'show the messages that the model sees: the last summary, and the messages after it')
    .addHelpText(
      'after',
      '\nWithout a worker, or for a closed session, the state comes from the history.\nWith --json, "source" says which.',
    )
    .action(async (id: string, options: Options) => {
      const { terminal } = cli;
      const [
        { callsPage, messagesPage },
        { describeSession, wholePage },
        { callLines, inFlightLines },
        render,
      ] = await Promise.all([
        import('../../session/views.ts'),
        import('../../client/read-session.ts'),
        import('../calls.ts'),
        import('../render.ts'),
      ]);
      const session = await cli.session(id);
      const { state, view, source, run } = await terminal.wait(`reading ${id}`, () => session.read());
      const { client } = await cli.connect();
      const running = await inFlightLines(client, await describeSession(client, id), state, Date.now());
      const messages = { limit: options.messages };
      const transcript = options.view
        ? await seenPage(session, options.messages)
        : await wholePage(client, 'messages', messages, messagesPage(state, messages));
      const some = { limit: options.calls };
      const calls = await wholePage(client, 'calls', some, callsPage(state, some));
      terminal.result(
        { session: view, commands: render.nextOf(view), source, run, transcript, calls },
        () => {
          const title = (name: string, shown: number, total: number): string =>
            terminal.style('bold', shown < total ? `${name} (last ${shown} of ${total})` : name);
          const parts = [render.header(view, terminal), render.needs(view, terminal)];
          if (view.plan.length > 0)
            parts.push(`${terminal.style('bold', 'Plan')}\n${render.planLines(view.plan)}`);
          parts.push(timesLines(view, terminal), scratchpadLines(view, terminal));
          parts.push(`${terminal.style('bold', 'Budget')}\n${render.budgetLines(view.budget)}`);
          if (transcript.items.length > 0) {
            const name = options.view ? 'Messages that the model sees' : 'Messages';
            const heading = title(name, transcript.items.length, transcript.total);
            parts.push(`${heading}\n${render.messageLines(transcript.items, terminal)}`);
          }
          if (calls.items.length > 0) {
            const heading = title('Tool calls', calls.items.length, calls.total);
            parts.push(`${heading}\n${callLines(calls.items, terminal)}`);
          }
          if (running.length > 0) parts.push([terminal.style('bold', 'In flight'), ...running].join('\n'));
          if (view.agentChanges.length > 0) parts.push(render.changeLines(view.agentChanges, terminal));
          if (view.notices.length > 0) parts.push(render.noticeLines(view.notices, terminal));
          if (source === 'history')
            parts.push(terminal.style('dim', 'read from the history: no worker answered'));
          return parts.filter((part) => part !== '').join('\n\n');
        },
      );
    });
}

/** The last messages that the model sees, and how many it sees in all. */
async function seenPage(session: Session, limit: number): Promise<TranscriptPage> {
  const view = await session.view();
  const first = Math.max(0, view.length - limit);
  return { items: view.slice(first), first, total: view.length };
}
